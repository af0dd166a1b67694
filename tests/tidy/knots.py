#!/usr/bin/env python3
"""knots: which files can only be understood together.

  knots.py BUILD --root DIR [--show]   check the objects of a build of the product
  knots.py --selftest --cc CC          show that a knot is seen

A file leans on another where its object has an undefined name that the other's defines (nm). A knot is a largest set of
files each of which leans on each other one, directly or by way of others: a strongly connected component of that graph,
over all folders at once, so that moving files does not untie one. None may have more than LIMIT files; those that do
today stand in REACHED by the folder that holds them, with a size that may only become smaller: the test fails above it,
and also below it until the table says so.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

LIMIT = 8  # files

REACHED = {
}

OBJECT = re.compile(r"(?:^|/)((?:local|meta|bank|proto)(?:/\w+)*)/CMakeFiles/(\w[\w-]*)\.dir/([\w./-]+)\.c\.o$")


def objects_of(build, root):
    """{source file: object} of the libraries and programs under a build directory."""
    out = {}
    for top in ("local", "meta", "bank", "proto"):
        for base, _, names in os.walk(os.path.join(build, top)):
            for name in names:
                path = os.path.join(base, name)
                found = OBJECT.search(os.path.relpath(path, build))
                source = found and f"{found[1]}/{found[3]}.c"
                # A source that is gone leaves its object behind.
                if source and os.path.exists(os.path.join(root, source)):
                    out[source] = path
    return out


def names_of(files):
    """{file: (defined, undefined) global names} from {file: object}."""
    out = {f: (set(), set()) for f in files}
    file_of = {o: f for f, o in files.items()}
    told = subprocess.run(["nm", "-gA", "-P", *file_of], check=True, capture_output=True, text=True).stdout
    for line in told.splitlines():
        path, name, kind = line.split()[:3]
        out[file_of[path.rstrip(":")]][kind in "Uw"].add(name)
    return out


def graph_of(files):
    """{file: {other file: [names]}} from {file: object}."""
    names = names_of(files)
    home = {n: f for f, (defined, _) in names.items() for n in defined if n not in ("main",) and not n.startswith("__")}
    graph = {f: {} for f in files}
    for f, (_, undefined) in names.items():
        for n in undefined:
            if home.get(n, f) != f:
                graph[f].setdefault(home[n], []).append(n)
    return graph


def knots_of(graph):
    """The strongly connected components of more than one file, largest first (Tarjan's algorithm, without recursion)."""
    index, low, stack, on, out = {}, {}, [], set(), []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            f, rest = work[-1]
            for g in rest:
                if g not in index:
                    index[g] = low[g] = len(index)
                    stack.append(g)
                    on.add(g)
                    work.append((g, iter(graph[g])))
                    break
                if g in on:
                    low[f] = min(low[f], index[g])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[f])
                if low[f] == index[f]:
                    knot = set()
                    while f not in knot:
                        knot.add(stack.pop())
                    on -= knot
                    if len(knot) > 1:
                        out.append(sorted(knot))
    return sorted(out, key=len, reverse=True)


def show(graph, knot):
    print("  " + " ".join(knot))
    for f in knot:
        for g in sorted(set(graph[f]) & set(knot)):
            print(f"    {f} -> {g}: {' '.join(sorted(graph[f][g]))}")


def check(build, root, shown):
    graph = graph_of(objects_of(build, root))
    if not graph:
        sys.exit(f"knots: no objects under {build}")
    failed = False
    left = dict(REACHED)
    for knot in knots_of(graph):
        place = os.path.commonpath([os.path.dirname(f) for f in knot])
        size = len(knot)
        allowed = left.pop(place, LIMIT)
        print(f"{place}: {size} files")
        if shown:
            show(graph, knot)
        if size > allowed:
            failed = True
            print(f"{place}: a knot of {size} files, {allowed} are allowed:", " ".join(knot), file=sys.stderr)
        elif LIMIT < allowed != size:
            failed = True
            print(f"{place}: its largest knot has {size} files: say so in REACHED", file=sys.stderr)
    for place in left:
        failed = True
        print(f"{place}: has no knot: take it out of REACHED", file=sys.stderr)
    print(f"{len(graph)} files")
    return failed


def selftest(cc):
    with tempfile.TemporaryDirectory() as d:
        at = os.path.join(d, "local/x/CMakeFiles/nui_x.dir")
        os.makedirs(at)
        for i in range(LIMIT + 1):
            source = os.path.join(d, f"local/x/s{i}.c")
            with open(source, "w", encoding="utf-8") as f:
                f.write(f"void f{(i + 1) % (LIMIT + 1)} (void);\nvoid f{i} (void);\nvoid f{i} (void) {{ f{(i + 1) % (LIMIT + 1)} (); }}\n")
            subprocess.run([cc, "-c", source, "-o", os.path.join(at, f"s{i}.c.o")], check=True)
        graph = graph_of(objects_of(d, d))
        assert [len(k) for k in knots_of(graph)] == [LIMIT + 1], graph
        REACHED.clear()
        assert check(d, d, False), "a knot above the limit is not seen"
        os.remove(os.path.join(d, "local/x/s0.c"))
        assert not check(d, d, False), "a chain is no knot"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", nargs="?")
    p.add_argument("--root", default=".", help="of the sources")
    p.add_argument("--show", action="store_true")
    p.add_argument("--selftest", action="store_true")
    p.add_argument("--cc")
    a = p.parse_args()
    if a.selftest:
        selftest(a.cc)
        return 0
    return check(a.build, a.root, a.show)


if __name__ == "__main__":
    sys.exit(main())
