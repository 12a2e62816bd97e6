"""The command line: run, reproduce, plan, gate, report, official, export."""
