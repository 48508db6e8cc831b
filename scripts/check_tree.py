#!/usr/bin/env python3
"""Checks the rules of this tree that no compiler sees; prints `file:line: what is wrong; what would
be right` for each breach and exits 1 if there is any. Files that have grown long are listed, and
are no breach."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

LONG = 400
CODE = {".h", ".cc", ".cu", ".cuh", ".inc"}
TEXT = CODE | {".py", ".sh", ".md", ".txt", ".json", ".cmake", ".map", ""}
# These two spell out what they look for.
OWN = {"scripts/check_tree.py", "scripts/check_tree_test.py"}

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|placeholder)\b", re.IGNORECASE)
# Also what `apt-get` and `pip` are configured with is the machine's business: no host of a package
# registry, no path of the machine on which something was written.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:work|root|home|Users|mnt)/\w")
HOST = re.compile(r"\b(?:https?|git|ssh)://([\w.-]+)")
HOSTS = {
    "arxiv.org", "developer.download.nvidia.com", "docs.nvidia.com", "doi.org", "github.com", "huggingface.co",
    "json-schema.org", "keepachangelog.com", "semver.org", "vega.github.io", "www.apache.org",
    "www.opencompute.org", "rocm.docs.amd.com", "example.org",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PRINTS = re.compile(r"\bstd::(cout|cerr|exit|abort|_Exit|quick_exit)\b|\b(printf|fprintf|puts|_exit)\s*\(")
SEVERAL_TIMES = re.compile(r"Included (inside|once per)")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
# Words of other people's files that happen to be names here: (file, word).
FOREIGN = {("harness/suite/hf_config.cc", "mxfp4")}  # a quant_method of Hugging Face's config.json
# May be included from, by folder. Dependency goes one way.
MAY_INCLUDE = {
    "reference": ("reference/",),
    "kernels": ("reference/", "kernels/"),
    "harness": ("reference/", "kernels/", "harness/"),
    "suites": ("reference/", "kernels/", "harness/"),
}
ORACLE = ("reference/oracle", "reference/error.h", "reference/ops/")


def tree_files(root):
    """Files that git tracks or would track; all files where there is no git."""
    try:
        names = subprocess.run(
            ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in {"build", ".git", "__pycache__"}]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in files]
    return sorted({n for n in names if n and (root / n).is_file()})


def is_test(name):
    return bool(re.search(r"(_test\.|(^|/)(test|testing|fakes?|mutants)[/_])|_testing\.", name))


def check_words(name, lines):
    if name in OWN or name == "LICENSE":
        return
    for number, line in enumerate(lines, 1):
        if m := UNFINISHED.search(line):
            yield f"{name}:{number}: the word '{m[0]}'; finish it, or open an issue"
        if m := MACHINE_PATH.search(line):
            yield f"{name}:{number}: '{m[0]}...' is a path of one machine; use a path in the tree"
        for host in HOST.findall(line):
            if host not in HOSTS:
                yield f"{name}:{number}: unknown host {host}; cite a source listed in check_tree.py, or add it there"


def generated_by_cmake(root, name, path):
    """Does the CMakeLists.txt beside `name` write the file that it includes?"""
    lists = (root / name).parent / "CMakeLists.txt"
    return lists.is_file() and path in lists.read_text()


def check_includes(root, name, lines):
    folder = name.split("/")[0]
    if folder not in MAY_INCLUDE or Path(name).suffix not in CODE:
        return
    for number, line in enumerate(lines, 1):
        m = INCLUDE.match(line)
        if not m:
            continue
        path = m[2]
        if m[1] == '"' and not (root / path).is_file() and not generated_by_cmake(root, name, path):
            yield f'{name}:{number}: #include "{path}" is no path from the root; write it in full'
        top = path.split("/")[0]
        if top in MAY_INCLUDE and not path.startswith(MAY_INCLUDE[folder]):
            yield f"{name}:{number}: {folder} must not include {path}; reference <- kernels <- harness"
        if folder == "kernels" and path.startswith(ORACLE) and not is_test(name):
            yield f"{name}:{number}: a kernel must not include the oracle ({path}); compare in a test"
        if name == "kernels/backend.h" and re.search(r"cuda|hip|nvrtc|cublas", path):
            yield f"{name}:{number}: the seam must not include {path}; keep it in that backend's folder"
    if name.endswith(".h") and not any(line.strip() == "#pragma once" for line in lines):
        if not SEVERAL_TIMES.search(" ".join(lines[:8])):
            yield f"{name}:1: a header without #pragma once; add it, or say 'Included once per ...' at the top"


def known_names(root, files):
    """Scheme families and backends, from where they are defined: name -> where it may be compared."""
    names = {}
    for name in files:
        m = re.fullmatch(r"reference/schemes/(\w+)\.cc", name)
        if m and not is_test(name) and m[1] not in {"scheme", "schemes"}:
            names[m[1]] = re.compile(rf"(^|/){m[1]}(_\w+)?\.\w+$")
        m = re.match(r"kernels/(\w+)/", name)
        if m and m[1] not in {"common", "device", "include"}:  # shared by backends
            names[m[1]] = re.compile(rf"^kernels/{m[1]}/")
    table = root / "reference/schemes/schemes.cc"
    if table.is_file():
        for family in re.findall(r'"([a-z]+\d\w*)"', table.read_text()):
            names.setdefault(family, re.compile(rf"(^|/){family}(_\w+)?\.\w+$"))
    # Also names of element types, which files and options spell the same way.
    return {n: own for n, own in names.items() if n not in {"bf16", "fp16"}}


def check_names(name, lines, names):
    if not name.endswith((".h", ".cc", ".cu", ".cuh", ".py")) or is_test(name) or name in OWN:
        return
    if name == "reference/schemes/schemes.cc":
        return
    for number, line in enumerate(lines, 1):
        for word, own in names.items():
            if own.search(name) or word not in line or (name, word) in FOREIGN:
                continue
            q = rf"""["']{word}(_\w*)?["']"""
            if re.search(rf"[=!]=\s*{q}|{q}(sv|s)?\s*[=!]=|\b(starts_with|startswith|find|contains|compare|strcmp)\([^)]*{q}", line):
                yield f"{name}:{number}: '{word}' is compared outside its own file; ask the scheme or backend instead"


def check_prints(name, lines):
    if not name.startswith(("reference/", "kernels/")) or Path(name).suffix not in {".h", ".cc"} or is_test(name):
        return
    if "/bench/" in name:  # parts of a program
        return
    if any(re.match(r"int main\(", line) for line in lines):  # a program of its own
        return
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0]
        if m := PRINTS.search(code):
            yield f"{name}:{number}: library code must not print or exit ({m[0].strip('(')}); return or throw"


def unique(pairs):
    keys = [k for k, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"key '{key}' twice")
    return dict(pairs)


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def check_json(name, text):
    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refuse)
    except ValueError as error:
        yield f"{name}:{getattr(error, 'lineno', 1)}: {error}; write strict JSON"
        return
    if re.fullmatch(r"suites/models/[^/]+\.json", name):
        if not isinstance(value, dict) or value.get("name") != Path(name).stem:
            yield f"{name}:1: the model's name is not the file's; call it '{Path(name).stem}'"


def check_links(root, name, lines):
    for number, line in enumerate(lines, 1):
        for target in LINK.findall(line):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (root / name).parent.joinpath(target).exists():
                yield f"{name}:{number}: the link to {target} leads nowhere; correct the path"


NAMESPACE = re.compile(r"^namespace (moegauge[\w:]*) \{")
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)\b[^;]*\{")


def check_types(name, lines, types):
    """Two types of one name in one namespace are one to the linker, which keeps either's code for
    both: nothing warns, and a vector of one is destroyed as a vector of the other."""
    if Path(name).suffix != ".h":
        return
    namespace = ""
    for number, line in enumerate(lines, 1):
        if found := NAMESPACE.match(line):
            namespace = found[1]
        elif (found := TYPE.match(line)) and namespace:
            other = types.setdefault((namespace, found[1]), name)
            if other != name:
                yield f"{name}:{number}: {other} has a type {namespace}::{found[1]} too; rename one"


def check_tree(root):
    """Returns (breaches, long files)."""
    root = Path(root)
    files = tree_files(root)
    names = known_names(root, files)
    breaches, long, types = [], [], {}
    for name in files:
        suffix = Path(name).suffix
        if suffix not in TEXT:
            continue
        try:
            text = (root / name).read_text()
        except UnicodeDecodeError:
            breaches.append(f"{name}:1: not UTF-8; save it as UTF-8")
            continue
        lines = text.splitlines()
        breaches += check_words(name, lines)
        breaches += check_includes(root, name, lines)
        breaches += check_names(name, lines, names)
        breaches += check_prints(name, lines)
        breaches += check_types(name, lines, types)
        if suffix == ".json" and "/testdata/" not in name:
            breaches += check_json(name, text)
        if suffix == ".md":
            breaches += check_links(root, name, lines)
        if suffix in CODE | {".py"} and len(lines) > LONG:
            long.append(f"{name}: {len(lines)} lines")
    return breaches, long


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    breaches, long = check_tree(root)
    for line in long:
        print(f"long: {line}")
    for line in breaches:
        print(line)
    print(f"{len(breaches)} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
