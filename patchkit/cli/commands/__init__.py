"""The commands: their names, one-line summaries and examples. Modules are imported when a command is used."""

from __future__ import annotations

from patchkit.tuples import NamedTuple


class Command(NamedTuple):
    """A sub-command: ``configure_<name>`` and ``run_<name>`` stand in ``module``."""

    module: str
    summary: str
    example: str
    description: str = ""


COMMANDS: dict[str, Command] = {
    "apply": Command(
        "change",
        "apply patches: guards, plan, write",
        "  patchkit apply logits-greedy --diff\n"
        "  patchkit --python ~/vllm/bin/python apply logits-greedy --dry-run --json",
        "Apply patches, all or none. One that is applied is left alone; one whose file\nchanged is put in anew.",
    ),
    "revert": Command(
        "change",
        "take patches out, byte for byte",
        "  patchkit revert logits-greedy\n  patchkit revert --all",
        "Take patches out. Hand edits made since outside of what patchkit wrote are kept;\nthose inside are refused.",
    ),
    "sync": Command(
        "change",
        "make the site match the project's list",
        "  patchkit sync      after a reinstall, or in a Dockerfile behind `pip install`\n"
        "  patchkit sync --dry-run --diff",
        "Apply what the project's list wants and is missing, take out what it does not\n"
        "want, heal a reinstall. The list is `apply` in [tool.patchkit] of pyproject.toml;\n"
        "without one, what the ledger holds is wanted.",
    ),
    "run": Command(
        "run",
        "run a command with patches in memory only",
        "  patchkit run --with logits-greedy -- python serve.py\n"
        "  patchkit run -- pytest -q      with the patches of the project's list\n"
        "  patchkit run --pristine -- python bench.py      as installed",
        "Run a command whose Pythons import patched modules; no file of the site is\n"
        "written. They see exactly the patches named, whatever is applied on disk; so do\n"
        "the processes that they start. The command's exit status is the one of `run`.",
    ),
    "check": Command(
        "check",
        "report drift; exit 1 when there is any",
        "  patchkit check     at every process start, or in CI\n  patchkit check logits-greedy --json",
        "Compare the site with the ledger and the project's list; exit 1 when something\n"
        "drifted. Needs no right to write.",
    ),
    "list": Command("inspect", "list the patches there are, and their state", "  patchkit list"),
    "show": Command("inspect", "explain one patch in words, with its compatibility", "  patchkit show logits-greedy"),
    "diff": Command(
        "inspect",
        "what the site's files differ by from what was installed",
        "  patchkit diff\n  patchkit diff logits-greedy",
    ),
    "log": Command("inspect", "what was done to the site, and when", "  patchkit log -n 5"),
    "live": Command(
        "live",
        "which applied patches a running or finished job really executed",
        "  patchkit live --probes probes      the folder that the job had in $PATCHKIT_PROBES\n"
        "  patchkit live logits-greedy --pid 4711 --wait 60",
        "Tell which patches ran in a job, which were loaded and not executed, and which\n"
        "neither, by what their `probe` edits reported. Exit 1 unless all ran. The job must\n"
        "be named, by --pid, by --probes or by both: without, nothing is looked at, and the\n"
        "exit status is 2.",
    ),
    "require": Command(
        "require",
        "refuse to start a program unless its patches are in force",
        "  patchkit require logits-greedy && exec python serve.py\n"
        "  patchkit --python ~/vllm/bin/python require logits-greedy -- vllm serve MODEL",
        "Exit 5 where one of the patches is absent, lost, stale, modified, shadowed or inert;\n"
        "else run the command behind `--`, in the place of this process. For programs whose\n"
        "site does not have patchkit; where it has: `patchkit.require`, from Python.",
    ),
    "new": Command("author", "write a patch file to start from", "  patchkit new my-fix requests"),
    "edit": Command(
        "author",
        "make a scratch copy of a distribution, to be edited",
        "  patchkit edit requests",
        "Copy the pristine files of a distribution, to change them with any editor.",
    ),
    "create": Command(
        "author",
        "make a patch of what was edited by hand",
        "  patchkit create my-fix requests\n  patchkit create my-fix requests --from requests-2.32.3",
        "Make a patch of what was edited by hand in the site, or in a scratch copy. It is\n"
        "proved to give the same bytes before it is saved. The site then counts as having\nit applied.",
    ),
    "import": Command(
        "author",
        "make a patch of a unified diff",
        "  patchkit import pr-123.diff --name my-fix --dist requests",
        "Make a patch of a unified diff, of a pull request perhaps, for the release that is\n"
        "installed. Each hunk is placed by its content, where that stands once, or reported;\n"
        "never by line number. Files that the distribution does not ship are left out.",
    ),
    "export": Command(
        "author",
        "print a patch as a unified diff, for upstream",
        "  patchkit export logits-greedy > fix.diff\n  patchkit export my-fix --prefix src/ --output fix.diff",
        "Print the diff from the installed release to that release with the patch, as git\napply and patch take it.",
    ),
    "lint": Command(
        "lint",
        "check patch files and recipes; improve patch files",
        "  patchkit lint      every patch of the project\n"
        "  patchkit lint my-fix --against installed\n"
        '  patchkit lint my-fix --against ">=2.30,<2.33" --fix --dry-run',
        "Check patch files: without a site, or against what is installed or was released.\n"
        "--fix rewrites them where that is proved to change nothing that the patch does.",
    ),
    "matrix": Command(
        "matrix",
        "which released versions a patch fits",
        "  patchkit matrix logits-greedy\n"
        '  patchkit matrix logits-greedy --versions ">=0.30" --markdown\n'
        "  patchkit matrix --all          a CI job: 1 when a new release breaks a patch\n"
        "  patchkit matrix --upgrade tpu-inference==0.33.0",
        "Plan patches on the released wheels of their target, in memory: where they apply,\n"
        "where they fail and why, and the requirement that follows. Nothing is installed.",
    ),
    "port": Command(
        "port",
        "carry a patch to a release that it does not fit",
        "  patchkit port logits-greedy --to 0.33.0\n  patchkit port logits-greedy --to 0.33.0 --write",
        "Look for the code of each edit that does not fit a release, and propose a variant of\n"
        "the edit for it, with the evidence for its place. Written only on request, and only\n"
        "where every place is sure; else a person decides.",
    ),
    "transplant": Command(
        "transplant",
        "copy modules out of the site; the copy takes their place at run time",
        "  patchkit transplant tpu_inference.kernels.ragged_paged_attention.v3 my_rpa\n"
        "  patchkit transplant diff my_rpa      what was edited in it\n"
        "  patchkit transplant update my_rpa     after an upgrade of the package\n"
        "  patchkit transplant to-patch my_rpa --name my-fix",
        "Copy a module or package of the site into a folder of your own, to be edited there.\n"
        "`import my_rpa.activate` puts it in the place of the stock modules, and of every\n"
        "direct reference to what they define; the site is not changed.",
    ),
    "rig": Command(
        "rig",
        "the real TPU engine on a CPU: make it, run it, prove patches on it",
        "  patchkit rig create rig\n"
        "  patchkit rig run rig --with logits-greedy --mode greedy --mode logprobs\n"
        "  patchkit rig prove rig",
        "Make an environment with the released vllm-tpu and tpu-inference on CPU jax, and a\n"
        "tiny random model; generate with the real engine and patches in memory; prove what\n"
        "the shipped patches claim. Counts and identities mean something there, times do not.",
    ),
    "recipes": Command(
        "recipes",
        "list the recipes there are; explain one",
        "  patchkit recipes\n"
        "  patchkit recipes logits-greedy-cpu\n"
        "  patchkit recipes logits-greedy --copy recipes      to change it",
        "List the experiments that can be named; or explain one: what is compared, how it is\n"
        "judged, how many processes that takes, and what was published.",
    ),
    "rebench": Command(
        "rebench",
        "measure patches against their baseline; only what earns its place stays",
        "  patchkit rebench logits-greedy --dry-run      the plan\n"
        "  patchkit --python ~/vllm/bin/python rebench logits-greedy\n"
        "  patchkit rebench logits-greedy --resume      after Ctrl-C, or worse",
        "Run a recipe's experiment on the site: pairs of fresh processes, patches in and out\n"
        "between them, a verdict after each pair. Patches stay where they pass; else they are\n"
        "taken back, and the baseline is measured again. Exit 0 pass, 1 regressed, 6 else.",
    ),
    "report": Command(
        "report",
        "show an experiment again, or compare several",
        "  patchkit report patchkit-runs/logits-greedy-20261201T030000Z --html report.html\n"
        "  patchkit report patchkit-runs/logits-greedy-*     the same recipe on other days",
        "Show the report of a finished experiment anew, in the form asked for; several are\n"
        "compared: what changed, in which session, and what else differed between them.",
    ),
    "trace": Command(
        "trace",
        "what a profiler trace says, by operation and shape; compare two",
        "  patchkit trace traces --since 2026-12-01T03:00:00 --batch 512 --layers 18\n"
        "  patchkit trace traces --newest --kernel d:bkv=256 --without-kernel d:bkv=2048\n"
        "  patchkit trace compare baseline/traces treatment/traces",
        "Find the trace that a job's profiler wrote, see that it is of that job, and add up\n"
        "its operations by program, name and shape, with counts held against the steps.\n"
        "`compare` shows what moved, appeared and vanished. Exit 6 for a stale trace.",
    ),
    "compile-time": Command(
        "compiletime",
        "time lowering, compiling and the first run, a fresh process per trial",
        "  patchkit --python ~/vllm/bin/python compile-time attention\n"
        "  patchkit compile-time bench/mine.toml --trials 3 --against runs/yesterday",
        "Compile what a spec's own Python file makes, with the compile cache off, each trial\n"
        "in a process of the site's interpreter, the variants by turns; medians and ranges.",
    ),
    "schema": Command(
        "lint",
        "print the JSON Schema of patch files, or of recipes",
        "  patchkit schema\n  patchkit schema --output patches/patch.schema.json\n"
        "  patchkit schema --recipe --output recipes/recipe.schema.json",
        "Print the JSON Schema of patch files or recipes, or write it to a file beside them,\n"
        "with which an editor completes and checks them. Any other file there is left alone.",
    ),
    "doctor": Command("doctor", "diagnose the site, and what patchkit sees of it", "  patchkit doctor"),
    "try": Command(
        "trial",
        "show the whole life of a patch on a throwaway environment with the real release",
        "  patchkit try logits-greedy --version 0.24.0",
    ),
}

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("change", ("apply", "revert", "sync", "run")),
    ("look", ("check", "list", "show", "diff", "log", "live", "require")),
    ("write", ("new", "edit", "create", "import", "export", "port", "transplant")),
    ("patch files", ("lint", "matrix", "schema")),
    ("prove", ("recipes", "rebench", "report", "trace", "compile-time", "rig")),
    ("help", ("try", "doctor")),
)
