#!/usr/bin/env python3
"""layering: who may include whom, and what a core may call.

  layering.py --root DIR [--base LIBNUI_BASE] [--core LIB]...   check a source tree and archives
  layering.py --selftest --cc CC --ar AR                        show that each rule can fail

The rules are what proto/README.md and each part's README say under "may include" (PROTO and may_include below). Departures are listed in DEPARTURES with a reason.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

PARTS = ("local", "meta", "bank")

# Folders of proto, and what each may include beside itself.
PROTO = {
    "proto/base": set(),
    "proto/hash": set(),
    "proto/conf": {"proto/base"},
    "proto/content": {"proto/base", "proto/hash"},
    "proto/audit": {"proto/base", "proto/hash", "proto/nui/v1", "proto/rpc"},
    "proto/store": {"proto/base"},
    "proto/curl": {"proto/base"},
    "proto/child": {"proto/base"},
    "proto/notify": {"proto/base", "proto/child", "proto/conf", "proto/curl"},
    "proto/metrics": {"proto/base"},
    "proto/rpc": {"proto/base", "proto/hash", "proto/nui/v1", "proto/conf", "proto/metrics"},
    "proto/job": {"proto/base", "proto/hash", "proto/rpc", "proto/nui/v1"},
    "proto/cli": {"proto/base", "proto/hash", "proto/conf", "proto/rpc", "proto/job", "proto/nui/v1"},
    "proto/nui/v1": set(),
}

# Headers of rooms, and whose they are: by the beginning of the paths that may include them.
OWN_HEADERS = {
    "local/conf/settings_i.h": ("local/conf/",),
    "local/svc/admin/admin.h": ("local/svc/admin/", "local/svc/svc.c"),
    "local/svc/files/staging_i.h": ("local/svc/files/",),
    "local/svc/forecast/forecast_i.h": ("local/svc/forecast/",),
}

# rpc -> conf: daemon.c reads the configuration. cli -> conf, rpc: the client reads its configuration
# and makes connections. local/conf turns maui.cfg into the core's policy, for svc and sim.
DEPARTURES = {
    ("local/sim", "meta/core"): "`nui sim --grid` places jobs by the metascheduler's own choice",
    ("local/link", "local/store"): "the bank link empties the outbox that the store fills",
}

# The rooms of the metascheduler, and which of its folders each may include beside itself. single, group and lead are three
# protocols: what one of them has to tell another goes by the table of listeners (meta/job/hub.h).
META_GROUND = {"meta/core", "meta/conf", "meta/store", "meta/link"}
ROOMS = {
    "meta/job": META_GROUND,
    "meta/place": META_GROUND | {"meta/job"},
    "meta/lead": META_GROUND | {"meta/job"},
    "meta/single": META_GROUND | {"meta/job", "meta/place", "meta/lead"},
    "meta/group": META_GROUND | {"meta/job", "meta/place", "meta/lead"},
}

# A core is given time, randomness and input; these two modules of base are for shells.
NOT_FOR_CORES = {"proto/base/log.h", "proto/base/clock.h"}
CORE_SYSTEM_HEADERS = {
    "assert.h", "ctype.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdalign.h", "stdarg.h",
    "stdbool.h", "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "strings.h",
    "uthash.h", "utarray.h", "utlist.h", "utstring.h",
}
CORE_SYMBOLS = re.compile(r"""^(
    mem(cpy|move|set|cmp|chr|rchr|mem) | str(len|nlen|cmp|ncmp|casecmp|ncasecmp|chr|rchr|str|spn|cspn|pbrk|cpy|ncpy|dup|ndup|tok_r)
  | strto(l|ll|ul|ull|d) | __isoc[0-9]+_strto\w+ | (v?sn)printf | __v?snprintf_chk | __mem\w+_chk | __str\w+_chk
  | malloc | calloc | realloc | reallocarray | aligned_alloc | free | qsort | bsearch | abs | labs | llabs
  | abort | exit | __assert_fail | __stack_chk_fail | __ctype_b_loc | __ctype_toupper_loc | __ctype_tolower_loc
  | toupper | tolower | isalnum | isalpha | isdigit | isspace | isupper | islower | isxdigit
  | (pow|exp|exp2|log|log2|log10|sqrt|floor|ceil|round|rint|trunc|fabs|fmod|fmin|fmax|ldexp|frexp|hypot)[fl]? | l?l(round|rint)[fl]?
  | _GLOBAL_OFFSET_TABLE_ | __(u?(div|mod|divmod)|mulo?)[dt]i[34] | __popcountdi2
  | __(asan|ubsan|sanitizer|lsan|odr_asan|sancov|gcov)\w* | mangled_path
)$""", re.X)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def area_of(path):
    """proto/base/err.h -> proto/base, local/main.c -> local."""
    parts = path.split("/")
    if parts[0] == "proto":
        return "proto/nui/v1" if parts[1:3] == ["nui", "v1"] else "/".join(parts[:2])
    return parts[0] if len(parts) == 2 else "/".join(parts[:2])


# A resource manager's folder. (main.c has --from-slurm.)
ADAPTER = re.compile(r"local/rm/[^/]+/")


def may_include(area, target):
    """Whether a file of one area may include a header of another."""
    if area == target:
        return True
    if area in PROTO:
        return target in PROTO[area]
    if area in ROOMS and not target.startswith("proto/"):
        return target in ROOMS[area]
    if area == "cli":
        return target == "proto/cli"
    part, _, folder = area.partition("/")
    if part not in PARTS:
        return True
    if target.startswith("proto/"):
        return folder != "core" or target == "proto/base"
    if (area, target) in DEPARTURES:
        return True
    other, _, there = target.partition("/")
    if other != part or not there:
        return False
    if folder == "core" or folder == "cli":
        return False
    if folder in ("store", "rm", "link", "sql", "trace", "stage"):
        return there == "core"
    if folder == "conf":
        return there in ("core", "trace", "rm")
    if folder == "estimate":
        return there == "core"
    if folder == "sim":
        return there in ("core", "conf", "estimate", "trace")
    if folder in ("svc", "web", ""):  # "": main.c
        return there not in ("cli", "sim")
    return False


def source_files(root):
    for top in ("proto", "cli") + PARTS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc", ".cpp")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def without_comments(text):
    return re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)


def resolve(root, path, name):
    """The included file's place under the root; None when it is not ours."""
    beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
    if os.path.exists(os.path.join(root, beside)) and not beside.startswith(".."):
        return beside
    top = name.split("/")[0]
    return name if top in ("proto", "tests") + PARTS else None


def check_includes(root):
    problems, count = [], 0
    for path in source_files(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = without_comments(f.read())
        area = area_of(path)
        is_core = area.endswith("/core")
        for match in INCLUDE.finditer(text):
            count += 1
            line = text.count("\n", 0, match.start()) + 1
            kind, name = match.groups()
            target = resolve(root, path, name)
            where = f"{path}:{line}: "
            if target is None:
                if is_core and name not in CORE_SYSTEM_HEADERS:
                    problems.append(f"{where}a core may not include <{name}>")
                elif kind == '"':
                    problems.append(f'{where}"{name}" is neither beside the file nor under the root')
            elif is_core and target in NOT_FOR_CORES:
                problems.append(f"{where}a core may not include {target}")
            elif not may_include(area, area_of(target)):
                problems.append(f"{where}{area} may not include {target}")
            elif not path.startswith(OWN_HEADERS.get(target, ("",))):
                problems.append(f"{where}{target} is a room's own")
            elif ADAPTER.match(target) and not path.startswith(("local/rm/", "local/main.c")):
                problems.append(f"{where}{target} is one resource manager's: rm.h and rm_kind.h say what each can do")
    return problems, count


# local/svc asks svc_now, so that a simulation is wiring; these few speak of the real world.
WALL_CLOCK = {"local/svc/clock.c": "where svc_now is", "local/svc/caller.c": "the audit log",
              "local/svc/job/jobspec.c": "signatures", "local/svc/modes/simulate.c": "a beginning without a log",
              "local/svc/pass.c": "how long a pass took"}


def check_clock(root):
    problems = []
    for path in source_files(root):
        if area_of(path) != "local/svc" or path in WALL_CLOCK:
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            for number, line in enumerate(without_comments(f.read()).split("\n"), 1):
                if "clock_now_us" in line:
                    problems.append(f"{path}:{number}: local/svc asks svc_now, not clock_now_us")
    return problems


# Text in a bounded buffer is written with text_printf, which cuts between characters. These write bytes:
# names of files, URLs, words of known alphabets.
RAW_TEXT = {"local/rm/embedded/supervise.c": "nothing but libc; what it writes is mended when it is read",
            "local/rm/jobdir.c": "names of files", "local/rm/embedded/rm_embedded.c": "a cgroup's name",
            "local/rm/embedded/node_runs.c": "names of files and of a cgroup",
            "local/rm/slurm/slurm_job.c": "a job's title, of key and digits",
            "local/stage/userfile.c": "a file's name", "local/stage/filenote.c": "a file's name",
            "local/stage/rules.c": "a URL", "local/stage/request.c": "a signature's parts",
            "local/rm/rm_trace.c": "ids", "local/rm/slurm/slurm_resv.c": "names", "local/conf/acl.c": "names",
            "local/conf/place.c": "names", "local/conf/policyconf_place.c": "names",
            "bank/core/price.c": "names and numbers; each name is bounded and checked"}
RAW_CALL = re.compile(r'(?<!\w)(vsnprintf \(|snprintf \((?:[^";]|"(?:[^"\\]|\\.)*")*?"[^"]*%\.\d+s)')


def check_text(root):
    problems = []
    for path in source_files(root):
        part, _, folder = area_of(path).partition("/")
        if folder in ("base", "cli", "sim", "trace") or path in RAW_TEXT or not path.endswith(".c"):
            continue
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = without_comments(f.read())
        for match in RAW_CALL.finditer(text):
            if '"/' in match.group(0):  # a path: bytes
                continue
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: text that may be cut is written with text_printf")
    return problems


def nm(archive, *flags):
    out = subprocess.run(["nm", "--format=posix", *flags, archive], check=True, text=True,
                         capture_output=True).stdout
    member, result = "", []
    for line in out.splitlines():
        if line.endswith(":"):
            member = re.sub(r".*\[(.*)\]:$", r"\1", line).rstrip(":")
        elif line.strip():
            fields = line.split()
            result.append((member, fields[0], fields[1]))
    return result


def check_core(archive, base):
    allowed = {s for m, s, t in nm(archive, "--defined-only", "-g")}
    if base:
        allowed |= {s for m, s, t in nm(base, "--defined-only", "-g")
                    if not re.match(r"(log|clock)\.", m)}
    problems = {}
    for member, symbol, _ in nm(archive, "-u"):
        symbol = symbol.split("@")[0]
        if symbol not in allowed and not CORE_SYMBOLS.match(symbol):
            problems.setdefault((member, symbol), f"{os.path.basename(archive)}({member}): "
                                f"a core may not call {symbol}")
    return list(problems.values())


def selftest(cc, ar):
    """Builds a small tree in which every rule is broken once, and expects each to be told."""
    broken = {
        "proto/base/a.c": ("proto/conf/conf.h", "proto/base may not include"),
        "proto/store/a.c": ("proto/rpc/r.h", "proto/store may not include"),
        "proto/conf/a.c": ("proto/cli/c.h", "proto/conf may not include"),
        "local/core/a.c": ("proto/conf/conf.h", "local/core may not include"),
        "local/core/b.c": ("proto/base/clock.h", "a core may not include proto/base/clock.h"),
        "local/core/c.c": ("time.h", "a core may not include <time.h>"),
        "local/store/a.c": ("local/rm/r.h", "local/store may not include"),
        "local/svc/a.c": ("local/cli/c.h", "local/svc may not include"),
        "local/cli/a.c": ("local/core/c.h", "local/cli may not include"),
        "local/sim/a.c": ("local/svc/s.h", "local/sim may not include"),
        "meta/core/a.c": ("local/core/c.h", "meta/core may not include"),
        "bank/svc/a.c": ("meta/core/c.h", "bank/svc may not include"),
        "meta/lead/a.c": ("meta/group/g.h", "meta/lead may not include"),
        "local/svc/b.c": ("local/svc/admin/admin.h", "local/svc/admin/admin.h is a room's own"),
        "local/svc/c.c": ("local/rm/slurm/s.h", "is one resource manager's"),
        "local/conf/a.c": ("local/rm/slurm/s.h", "is one resource manager's"),
        "meta/job/a.c": ("meta/lead/l.h", "meta/job may not include"),
        "meta/main.c": ("meta/cli/c.h", "meta may not include"),
    }
    fine = {"local/svc/fine.c": "local/core/c.h", "local/main.c": "local/svc/s.h",
            "local/conf/fine.c": "local/rm/rm_kind.h", "local/rm/other/fine.c": "local/rm/other/o.h", "proto/cli/fine.c": "proto/rpc/r.h",
            "bank/core/fine.c": "proto/base/err.h", "meta/cli/fine.c": "proto/nui/v1/meta.pb-c.h",
            "meta/group/fine.c": "meta/lead/l.h", "local/svc/admin/fine.c": "local/svc/admin/admin.h",
            "local/svc/svc.c": "local/svc/admin/admin.h"}
    failures = []
    with tempfile.TemporaryDirectory() as root:
        def put(path, text):
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w") as f:
                f.write(text)
        for path, (name, _) in broken.items():
            put(path, f"#include <{name}>\n" if "/" not in name else f'#include "{name}"\n')
        for path, name in fine.items():
            put(path, f'/* #include "bank/core/x.h"\n */\n#include "{name}"\n')
        problems, _ = check_includes(root)
        for path, (_, text) in broken.items():
            if not any(p.startswith(path + ":1: ") and text in p for p in problems):
                failures.append(f"{path}: not told: {text}")
        failures += [f"told without need: {p}" for p in problems if p.split(":")[0] not in broken]
        put("local/svc/other.c", "long now (void)\n{\n    return clock_now_us ();\n}\n")
        put("local/svc/clock.c", "long svc_now (void) { return clock_now_us (); }\n")
        if [p.split(": ")[0] for p in check_clock(root)] != ["local/svc/other.c:3"]:
            failures.append("local/svc/other.c: the wall clock: not told, or clock.c is")

        put("local/svc/text.c", 'void f (char *o)\n{\n    snprintf (o, 9, "a"\n              "%.8s", o);\n}\n')
        put("local/svc/vtext.c", "int g (char *o, va_list a) { return vsnprintf (o, 9, o, a); }\n")
        put("local/svc/words.c", 'void h (char *o) { snprintf (o, 9, "%s", ""); text_printf (o, 9, "%.3s", o); }\n')
        if [p.split(": ")[0] for p in check_text(root)] != ["local/svc/text.c:3", "local/svc/vtext.c:1"]:
            failures.append(f"text that is cut: {check_text(root)}")

        calls = {"time": "long time (long *); long f1 (void) { return time (0); }",
                 "socket": "int socket (int, int, int); int f2 (void) { return socket (1, 1, 0); }",
                 "fopen": "void *fopen (const char *, const char *);"
                          " void *f3 (void) { return fopen (\"x\", \"r\"); }",
                 "random": "long random (void); long f4 (void) { return random (); }",
                 "protobuf_c_message_pack": "unsigned long protobuf_c_message_pack (void *, void *);"
                          " unsigned long f5 (void) { return protobuf_c_message_pack (0, 0); }",
                 "clock_now_us": "long clock_now_us (void);"
                          " long f6 (void) { return clock_now_us (); }"}
        good = ("unsigned long strlen (const char *); void abort (void); long base_fn (void);"
                " long g (const char *t) { if (!t) abort (); return strlen (t) + base_fn (); }")
        base = {"clock": "long clock_now_us (void) { return 1; }",
                "err": "long base_fn (void) { return 2; }"}

        def archive(name, sources):
            objects = []
            for stem, text in sources.items():
                put(f"o/{stem}.c", text)
                objects.append(os.path.join(root, f"o/{name}-{stem}.o") if name == "core"
                               else os.path.join(root, f"o/{stem}.o"))
                subprocess.run([cc, "-w", "-O0", "-fno-builtin", "-c", os.path.join(root, f"o/{stem}.c"),
                                "-o", objects[-1]], check=True)
            out = os.path.join(root, f"lib{name}.a")
            subprocess.run([ar, "rcs", out, *objects], check=True)
            return out
        told = check_core(archive("core", {**calls, "good": good}), archive("base", base))
        for symbol in calls:
            if not any(p.endswith(f"may not call {symbol}") for p in told):
                failures.append(f"not told: {symbol}")
        if len(told) != len(calls):
            failures.append(f"told without need: {told}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root")
    parser.add_argument("--base")
    parser.add_argument("--core", action="append", default=[])
    parser.add_argument("--selftest", action="store_true")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--ar", default="ar")
    args = parser.parse_args()
    if args.selftest:
        problems = selftest(args.cc, args.ar)
    else:
        problems, count = check_includes(args.root)
        problems += check_clock(args.root)
        problems += check_text(args.root)
        if count == 0:
            problems.append(f"{args.root}: no source with an include was found")
        for core in args.core:
            problems += check_core(core, args.base)
        for (area, target), reason in DEPARTURES.items():
            print(f"departure: {area} may include {target}: {reason}")
        print(f"{count} includes and {len(args.core)} core archives looked at")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
