"""`cns COMMAND ...`: every command of the compendium, each with its own --help. Only what the command needs is imported."""

import argparse
import importlib
import os
import sys

from cnslib.core import pins  # noqa: F401  (before anything numerical)

# The module whose `main` takes the arguments, those that come first, and what the command does.
COMMANDS: dict[str, tuple[str, list[str], str]] = {
    "run": ("cnslib.tools.runner", [], "run notebooks headless, in order or side by side"),
    "reproduce": ("cnslib.tools.reproduce", [], "run every notebook again and compare with the committed results"),
    "numbers": ("cnslib.tools.numbers", [], "compare the numbers in the prose with the results"),
    "gate": ("cnslib.tools.gate", [], "compare classifiers with their published accuracies"),
    "report": ("cnslib.tools.report", [], "one classifier beside the others"),
    "sliders": ("cnslib.tools.strip", [], "one slider of any text-to-image pipeline, and its strip"),
    "official": ("cnslib.tools.exchange", ["official"], "the paper's figures from the authors' predictions"),
    "export": ("cnslib.tools.exchange", ["export"], "images and predictions in the authors' layout"),
}


def main() -> int:
    """The exit status of the command that the command line names; with --help the list of commands."""
    listed = "\n".join(f"  {name:<10} {text}" for name, (_, _, text) in COMMANDS.items())
    parser = argparse.ArgumentParser(prog="cns", epilog=f"commands:\n{listed}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=[*COMMANDS, "lab"], metavar="COMMAND", help="what to do; `cns COMMAND --help` says more")
    options, rest = parser.parse_known_args(sys.argv[1:2])
    if options.command == "lab":
        os.execvp("jupyter", ["jupyter", "lab", "notebooks", *sys.argv[2:]])  # jupyter of the same environment  # nosec B606 B607
    module, first, _ = COMMANDS[options.command]
    return importlib.import_module(module).main([*first, *rest, *sys.argv[2:]])


if __name__ == "__main__":
    sys.exit(main())
