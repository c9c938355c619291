#!/usr/bin/env python3
"""Black-box tests for a server of the device protocol (doc/protocol.md).

    python3 run.py --server './hermes-mobile serve --agent demo'

README.md in this folder explains the options and how to add a case.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import fnmatch
import json
import sys

# Importing a module registers its cases.
import case_access  # noqa: F401
import case_cards  # noqa: F401
import case_chat  # noqa: F401
import case_connect  # noqa: F401
import case_delivery  # noqa: F401
import case_durable  # noqa: F401
import case_files  # noqa: F401
import case_pairing  # noqa: F401
import case_robust  # noqa: F401
import case_stream  # noqa: F401
from cases import CASES, GROUPS, Case
from runner import Runner


def main() -> int:
    parser = options()
    args = parser.parse_args()
    chosen = [case for case in CASES.values() if selected(case, args.only, args.fast)]
    if not chosen:
        parser.error("no case matches; --list prints their names")
    if args.list:
        print_list(chosen)
        return 0
    if not args.server:
        parser.error("--server: missing, give the command that starts the server")

    results = asyncio.run(Runner(args.server, max(1, args.jobs)).run_all(chosen))
    count = collections.Counter(result.outcome for result in results)
    if args.json:
        report = {
            "passed": count["ok"],
            "failed": count["FAIL"],
            "skipped": count["skip"],
            "cases": [result.to_json() for result in results],
        }
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(report, file, ensure_ascii=False, indent=1)
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] else 0


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Black-box tests for a server of the device protocol."
    )
    parser.add_argument("--server", metavar="COMMAND", help="command that starts the server")
    parser.add_argument(
        "--only", metavar="NAME", nargs="+", help="run these cases or groups (shell patterns work)"
    )
    parser.add_argument(
        "--fast", action="store_true", help="skip slow cases, which wait for the server's timeouts"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    parser.add_argument("--json", metavar="FILE", help="write results and durations to FILE")
    parser.add_argument(
        "--jobs", type=int, default=6, metavar="N", help="cases at a time (default: 6)"
    )
    return parser


def selected(case: Case, only: list[str] | None, fast: bool) -> bool:
    if fast and case.slow:
        return False
    return not only or any(case.group == name or fnmatch.fnmatch(case.name, name) for name in only)


def print_list(chosen: list[Case]) -> None:
    for group in GROUPS:
        print(f"# {group}")
        for case in chosen:
            if case.group == group:
                print(f"{case.name}{' [slow]' if case.slow else ''}\n    {case.about}")
    print(f"{len(chosen)} cases")


if __name__ == "__main__":
    sys.exit(main())
