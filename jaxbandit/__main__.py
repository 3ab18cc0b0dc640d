"""``python -m jaxbandit log clicks.csv ...``: what a conversion log tells, as tables, pictures and a page."""

import argparse
import sys
import tempfile
from pathlib import Path

from jaxbandit.decisions import compare
from jaxbandit.logs import LogFit, fit_log, read_log
from jaxbandit.policies import DUCB, UCB1, CorrectedThompson, PatientBandits, Policy, Thompson, Uniform

EXAMPLE = """example:
  python -m jaxbandit log clicks.csv --arm campaign --pulled click --converted sale --until 2026-11-30 --out report/

A row of the file is a click: its campaign, when it was made, when it was followed by a sale (empty if it was not).
With --horizon 50000 the report also says which policy to run for the next 50 000 clicks, and how sure that is.
Nothing of the file goes anywhere but into the output folder."""

INSTANCES, SEEDS = 50, 20


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jaxbandit", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    log = commands.add_parser(
        "log",
        help="rates and delays of a conversion log",
        description="Rates and delays of every arm of a conversion log, and what the log cannot tell.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    log.add_argument("file", type=Path, help="CSV file with a row for every pull")
    log.add_argument("--arm", required=True, metavar="COLUMN", help="column that names what was pulled")
    log.add_argument("--pulled", required=True, metavar="COLUMN", help="column of the times of the pulls")
    log.add_argument("--converted", required=True, metavar="COLUMN", help="column of the times of the conversions")
    log.add_argument("--until", required=True, metavar="TIME", help="when the log was cut, a date or a number")
    log.add_argument("--rounds-per-unit", type=float, metavar="R", help="visitors a unit (default: the log's average)")
    log.add_argument("--unit", help="day (default), hour, minute or second; for numbers only its name")
    log.add_argument("--horizon", type=int, metavar="T", help="also compare policies over the T pulls to come")
    log.add_argument(
        "--instances", type=int, default=INSTANCES, metavar="N", help=f"that the log leaves possible ({INSTANCES})"
    )
    log.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"runs on each of them ({SEEDS})")
    log.add_argument("--out", type=Path, default=Path("report"), metavar="DIR", help="output folder (default: report)")
    return parser.parse_args(argv)


def candidates(fit: LogFit) -> dict[str, Policy]:
    """What an analyst would choose from: with and without correction for delays, and the split of an experiment."""
    law = fit.delay_law()
    return {
        "Thompson corrected for delays": CorrectedThompson(law, window=None),
        "D-UCB": DUCB(window=None, cdf=law),
        "Thompson blind to delays": Thompson(),
        "UCB1 blind to delays": UCB1(),
        "PatientBandits(0.2)": PatientBandits(0.2),
        "every arm in turn": Uniform(),
    }


def main(argv: list[str] | None = None) -> int:
    options = arguments(argv)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=options.out):
            pass
    except OSError as error:
        print(f"--out {options.out} cannot be written: {error}; choose another folder", file=sys.stderr)
        return 2
    try:
        from jaxbandit.logs.report import write

        log = read_log(
            options.file,
            arm=options.arm,
            pulled=options.pulled,
            converted=options.converted,
            until=options.until,
            rounds_per_unit=options.rounds_per_unit,
            unit=options.unit,
        )
        fit = fit_log(log)
        print(fit)
        decision = None
        if options.horizon is not None:
            instances = fit.bootstrap(options.instances, key=0)
            run = {"horizon": options.horizon, "seeds": options.seeds, "key": 0, "history": log}
            decision = compare(candidates(fit), instances, **run)
            print(decision)
        for path in write(fit, options.out, decision):
            print(path)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
