#!/usr/bin/env python3
"""An expansion hook (docs/retrieval.md, "Hooks"): adds variants of a query from a table of synonyms.

    expansion_hook = ["/usr/bin/python3", "/opt/muniment/expansion_hook.py", "/etc/muniment/synonyms.json"]

The table has the form {"word": ["another", …], …} in lower case.
"""
import json
import re
import sys


def main() -> None:
    request = json.load(sys.stdin)
    with open(sys.argv[1], encoding="utf-8") as file:
        synonyms = json.load(file)
    variants = []
    for match in re.finditer(r"\w+", request["query"]):
        for synonym in synonyms.get(match[0].lower(), []):
            variants.append(request["query"][:match.start()] + synonym + request["query"][match.end():])
    variants = list(dict.fromkeys(variants))[:request["max_expansions"]]
    json.dump({"lex": variants, "vec": variants, "warnings": []}, sys.stdout)


if __name__ == "__main__":
    main()
