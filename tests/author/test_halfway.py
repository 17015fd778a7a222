"""``import`` of a diff that does not fit whole: what is said of it, and ``--edit``, a copy to be finished by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist

from patchkit.author.diffs import read_diff
from patchkit.author.mail import read_mail
from patchkit.model.load import load_patch
from patchkit.site.environment import resolve

MAIL = """\
From 5c40544eda0115e44aa3d9e2660a6d8a585bc40c Mon Sep 17 00:00:00 2001
From: A Person <person@example.org>
Date: Sun, 9 Aug 2026 16:59:09 -0700
Subject: [PATCH 1/2] Multiply (#17)

---
 demo/core.py | 5 +++--
 1 file changed, 3 insertions(+), 2 deletions(-)

"""
FILE = "diff --git a/demo/core.py b/demo/core.py\n--- a/demo/core.py\n+++ b/demo/core.py\n"
FITS = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = x + x\n+    y = 2 * x\n     return y\n"
STRAYS = """\
@@ -11,4 +11,4 @@ class Worker:
     def run(self, job):
-        result = double(job, 2)
+        result = double(job, 3)
         return result
"""
NEW_HEAD = "diff --git a/demo/new.py b/demo/new.py\n"
NEW = NEW_HEAD + "new file mode 100644\n--- /dev/null\n+++ b/demo/new.py\n@@ -0,0 +1 @@\n+A = 1\n"
END = "-- \n2.43.0\n\n"


@pytest.fixture
def diff(bench: Bench) -> str:
    """A mail of which one hunk has no place."""
    path = bench.root / "work" / "pr.patch"
    path.write_bytes((MAIL + FILE + FITS + STRAYS.replace("11,4", "11,3") + NEW + END).encode())
    return str(path)


def test_what_comes_nearest_is_shown_with_its_scope(bench: Bench, diff: str) -> None:
    error = bench.json("import", diff, "--name", "mine", "--dist", "demo").error
    assert error["message"].splitlines() == [
        "1 of 3 hunks has no single place in demo 1.0:",
        "  line 19 of the diff, demo/core.py: stands nowhere; what comes nearest:",
        "    lines 11 to 13 in Worker.run, 97% the same:",
        "           def run(self, job):",
        "      -        result = double(job, 2)",
        "      +        result = double(job)",
        "               return result",
    ]
    (hunk,) = error["hunks"]
    assert hunk["places"][0] | {"similarity": 0} == {
        "first": 11,
        "last": 13,
        "scope": "Worker.run",
        "similarity": 0,
        "diff": [
            "     def run(self, job):",
            "-        result = double(job, 2)",
            "+        result = double(job)",
            "         return result",
        ],
    }
    assert (hunk["path"], hunk["candidates"], error["total"], error["failing"]) == ("demo/core.py", [], 3, 1)
    assert "--edit DIR" in error["hint"]
    assert "--exclude demo/core.py" in error["hint"]


def test_two_places_are_told_by_their_scopes(bench: Bench) -> None:
    path = bench.root / "work" / "pr.diff"
    path.write_text(f"{FILE}@@ -17 +17 @@\n-        return result\n+        return 1\n")
    done = bench("import", str(path), "--name", "mine", "--dist", "demo")
    assert "stands 2 times, at line 13 in Worker.run, at line 17 in Worker.stop\n" in done.err


def test_a_copy_to_be_finished_by_hand(bench: Bench, diff: str) -> None:
    copy = bench.root / "work" / "my copy"
    done = bench("import", diff, "--name", "mine", "--dist", "demo", "--edit", "my copy")
    assert done.status == 1
    assert done.out.splitlines()[:5] == [
        "my copy: demo 1.0 with 2 of 3 hunks, no patch yet",
        "  demo/core.py",
        "  demo/new.py  (new file)",
        "1 has no single place, and is not in it:",
        "  line 19 of the diff, demo/core.py: stands nowhere; what comes nearest:",
    ]
    command = "patchkit create mine demo --from 'my copy' --summary 'Multiply (#17)'"
    assert done.out.splitlines()[-1] == f"do by hand what they mean, then: {command}"
    assert list(bench.patches.iterdir()) == []
    assert bench.pristine()
    half = CORE.replace("x + x", "2 * x")
    assert (copy / "demo" / "core.py").read_bytes() == half.encode()
    assert (copy / "demo" / "new.py").read_bytes() == b"A = 1\n"
    assert (copy / "demo" / "util.py").read_bytes() == bench.read("demo/util.py")
    (copy / "demo" / "core.py").write_bytes(half.replace("double(job)", "double(job, 3)").encode())
    assert bench("create", "mine", "demo", "--from", "my copy", "--summary", "Multiply (#17)").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == half.replace("double(job)", "double(job, 3)").encode()
    assert bench.read("demo/new.py") == b"A = 1\n"


def test_a_copy_of_a_diff_that_fits(bench: Bench) -> None:
    path = bench.root / "work" / "pr.diff"
    path.write_text(FILE + FITS)
    link = "https://example.org/demo/pull/17"
    arguments = ["import", str(path), "--name", "mine", "--dist", "demo", "--link", link]
    done = bench.json(*arguments, "--edit", "copy")
    assert (done.status, done.json["hunks"], done.json["unplaced"], done.json["path"]) == (0, 1, [], None)
    assert (bench.root / "work" / "copy" / "demo" / "core.py").read_text() == CORE.replace("x + x", "2 * x")
    done = bench.json(*arguments, "--edit", "copy")
    assert (done.status, done.error["code"]) == (2, "exists")
    assert f"create mine demo --from other --link {link}" in bench(*arguments, "--edit", "other").out
    assert bench(*arguments, "--edit", "third", "--dry-run").status == 2


def test_a_series_of_mails_is_laid_one_after_the_other(bench: Bench) -> None:
    """As the address of a pull request ending in ``.patch`` has it: each commit, on the ones before."""
    second = FILE + "@@ -5,3 +5,3 @@\n def double(x):\n-    y = 2 * x\n+    y = 3 * x\n     return y\n"
    more = NEW_HEAD + "--- a/demo/new.py\n+++ b/demo/new.py\n@@ -1 +1,2 @@\n A = 1\n+B = 2\n"
    path = bench.root / "work" / "pr.patch"
    path.write_bytes((MAIL + FILE + FITS + NEW + END + MAIL.replace("1/2", "2/2") + second + more + END).encode())
    done = bench.json("import", str(path), "--name", "mine", "--dist", "demo")
    assert (done.status, done.json["files"]) == (0, ["demo/core.py", "demo/new.py"]), done.error
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "3 * x").encode()
    assert bench.read("demo/new.py") == b"A = 1\nB = 2\n"


def test_the_commit_and_the_pull_request(bench: Bench) -> None:
    path = bench.root / "work" / "pr.patch"
    path.write_bytes((MAIL + FILE + FITS + END).encode())
    done = bench("import", str(path), "--name", "mine", "--dist", "demo")
    assert "the subject names pull request #17, the metadata no repository: add its address with --link\n" in done.err
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert patch.summary == "Multiply (#17)"
    assert patch.links == ()
    assert patch.description.startswith("Made of commit 5c40544eda0115e44aa3d9e2660a6d8a585bc40c, for demo 1.0. ")
    link = "https://example.org/demo/pull/17"
    done = bench("import", str(path), "--name", "mine", "--dist", "demo", "--link", link, "--overwrite")
    assert "pull request" not in done.err
    assert load_patch(str(bench.patches / "mine.toml")).links == (link,)


@pytest.mark.parametrize(
    ("urls", "links", "number"),
    [
        (["Source, https://github.com/some/demo"], ["https://github.com/some/demo/pull/17"], None),
        (
            ["Home, https://github.com/some/demo.git", "Issues, https://github.com/some/demo/issues"],
            ["https://github.com/some/demo/pull/17"],
            None,
        ),
        (["Source, https://github.com/some/demo", "Docs, https://github.com/some/docs"], [], "17"),
        (["Home, https://example.org/demo", "Funding, https://github.com/sponsors/some"], [], "17"),
    ],
)
def test_the_repository_of_a_number(tmp_path: Path, urls: list[str], links: list[str], number: str | None) -> None:
    info = make_dist(tmp_path, "demo", "1.0", {"demo/core.py": CORE})
    lines = "".join(f"Project-URL: {url}\n" for url in urls)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n{lines}\nHome-page: x\n")
    found = resolve(directory=str(tmp_path)).find("demo")
    assert found is not None
    mail = read_mail((MAIL + FILE + FITS).encode(), found)
    assert (list(mail.links), mail.number) == (links, number)


def test_what_stands_before_a_diff_is_not_of_it(tmp_path: Path) -> None:
    """Lines of one's own above it, with the source and the licence; an address within the diff is not its own."""
    make_dist(tmp_path, "demo", "1.0", {"demo/core.py": CORE})
    found = resolve(directory=str(tmp_path)).find("demo")
    assert found is not None
    own = "From https://example.org/demo/pull/3 under Apache-2.0, cut to what is needed.\n\n"
    body = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -1 +1 @@\n-a\n+see https://example.org/demo/pull/4\n"
    for text in (own + body + body.replace("core", "util"), own.replace("\n", "\r\n") + body):
        assert read_mail(text.encode(), found).links == ("https://example.org/demo/pull/3",)
        assert read_diff(text.encode())[0].path == "demo/core.py"
    assert read_mail((body + body.replace("core", "util")).encode(), found).links == ()
