"""Is each parameter of the reference's page maui-policies.md in the configuration of some page of
the policy book?

parameters.lst says, for each word of capitals on that page, which parameters it stands for; where the
reference is there, that list and the page have to name the same words. A parameter without a page
fails the test.
"""
import argparse
import pathlib
import re
import sys


def rows(path):
    for line in path.read_text().splitlines():
        words = line.split()
        if words and not words[0].startswith("#"):
            yield words


def config_lines(page):
    inside = False
    joined = ""
    for line in page.read_text().splitlines():
        if line.startswith("["):
            inside = line.strip() == "[config]"
            continue
        if not inside or line.lstrip().startswith("#"):
            continue
        joined += line
        if joined.endswith("\\"):
            joined = joined[:-1] + " "
            continue
        if joined.strip():
            yield joined
        joined = ""


def value_words(text):
    return {w.upper() for w in re.split(r"[\s,:=|+&^\"*()<>-]+", text) if w}


def names_of(line):
    """All names that this line of maui.cfg covers."""
    key, _, rest = line.strip().partition(" ")
    key = key.split("\t")[0]
    rest = line.strip()[len(key):]
    match = re.fullmatch(r"([A-Za-z0-9]+)(?:\[(.*)\])?", key)
    if not match:
        return
    name, index = match.group(1).upper(), match.group(2)
    yield name
    if index is not None:
        yield f"{name}[{index.upper()}]"
    if not name.endswith("CFG"):
        for word in value_words(rest):
            yield f"{name}={word}"
        return
    rest = re.sub(r"'([^']*)'", lambda quoted: quoted.group(1).replace(" ", ""), rest)
    rest = re.sub(r"\s*([&^+,])?=\s*", r"\1=", rest)
    for attr, attr_index, value in re.findall(
            r"(?:^|\s)([A-Za-z0-9.]+)(?:\[([^\]]*)\])?[&^+]?=(\"[^\"]*\"|(?:[^\s\"]|, )*)", rest):
        attr = attr.upper()
        for kind in (name, "*CFG"):
            yield f"{kind}:{attr}"
            if attr_index:
                yield f"{kind}:{attr}[{attr_index.upper()}]"
                if ":" in attr_index:
                    yield f"{kind}:{attr}[{attr_index.upper().split(':')[0]}:*]"
            for word in value_words(value):
                yield f"{kind}:{attr}={word}"


def main():
    options = argparse.ArgumentParser()
    for name in ("--scenarios", "--parameters", "--page"):
        options.add_argument(name, type=pathlib.Path, required=True)
    options = options.parse_args()
    wrong = []

    listed = {row[0]: [p for p in row[1:] if p != "-"] for row in rows(options.parameters)}
    if options.page.exists():
        words = set(re.findall(r"\b[A-Z][A-Z0-9]{2,}\b", options.page.read_text()))
        wrong += [f"{w} is on the page but not in {options.parameters.name}"
                  for w in sorted(words - set(listed))]
        wrong += [f"{w} is in {options.parameters.name} but not on the page"
                  for w in sorted(set(listed) - words)]
    else:
        print(f"{options.page} is not here: the list is not compared with it")

    covered = set()
    for page in sorted(options.scenarios.glob("**/*.txt")):
        if "refused" in page.read_text().split("[expect]")[-1].split():
            continue  # what is refused has no effect
        for line in config_lines(page):
            covered.update(names_of(line))
    wanted = {p for parameters in listed.values() for p in parameters}
    missing = {p for p in wanted if p.upper() not in covered}
    wrong += [f"{p} has no page in the policy book" for p in sorted(missing)]

    print(f"{len(wanted) - len(missing)} of {len(wanted)} parameters have a page")
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
