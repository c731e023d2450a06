import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import ingot
from tests.cli.program import COMMAND, environment
from tests.support.containers import ALL

STYLES = re.compile(r"\x1b\[[0-9;]*[mK]")
COMMANDS = (
    *("info", "head", "cat", "get", "ls", "convert", "merge", "split", "pack", "unpack"),
    *("extract", "index", "verify", "recover", "bench", "doctor", "version"),
)
EVIL = "\x1b]0;owned\x07\x1b[2J\r\n[red]x[/red]\u202e"


@pytest.mark.parametrize("name", ALL)
def test_info_has_a_style_on_a_terminal_only(data, on_terminal, ingot_cli, name):
    ran = on_terminal("info", name, cwd=data)
    assert ran.code == 0
    assert "\x1b[1m" in ran.out
    plain = ingot_cli("info", name, cwd=data)
    assert "\x1b" not in plain.out
    words = {word for word in re.findall(r"\w+", plain.out) if len(word) < 20}
    assert words <= set(re.findall(r"\w+", STYLES.sub("", ran.out)))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_fits_a_screen(on_terminal, command):
    ran = on_terminal(command, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: ingot {command} ")
    assert len(ran.out.splitlines()) <= 38
    assert "--json" in ran.out


def test_the_help_lists_all_commands_on_a_screen(on_terminal):
    ran = on_terminal("--help")
    assert ran.code == 0
    assert len(ran.out.splitlines()) <= 38
    assert re.findall(r"^  ([a-z]+) ", ran.out, re.MULTILINE) == list(COMMANDS)


def hostile(folder):
    """Write files and folders whose names, text and metadata try to control a terminal."""
    name = "ev\x1b[31mil[bold].ingot"
    with ingot.DatasetWriter(
        folder / name, {"text": "utf8", "[red]b": "bytes"}, metadata={EVIL: EVIL}
    ) as writer:
        writer.append({"text": EVIL, "[red]b": EVIL.encode()})
    tree = folder / "tree"
    (tree / "d\x1b[5m").mkdir(parents=True)
    (tree / "d\x1b[5m" / "f\r\x07[red]").write_bytes(b"x")
    ingot.pack(tree, folder / "pack.ingot")
    return name


@pytest.mark.parametrize("command", ["info", "head", "cat", "get", "verify", "bench", "nothing"])
def test_control_characters_in_data_never_reach_a_terminal(on_terminal, tmp_path, command):
    name = hostile(tmp_path)
    more = {"get": ["0"], "bench": ["--seconds", "0.01"]}.get(command, [])
    ran = on_terminal(command, name, *more, cwd=tmp_path)
    assert ran.code == (2 if command == "nothing" else 0), ran.out
    # The line of progress begins with a return of the cursor.
    text = STYLES.sub("", ran.out).replace("\rverified 1 of 1 rows", "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), repr(text)
    assert "owned" not in text or "\\x1b]0;owned" in text or "\\u001b]0;owned" in text
    assert "\x1b[31m" not in ran.out
    if command == "info":
        assert "[red]b" in text
        assert "[red]x[/red]" in text
    ran = on_terminal(command, f"{name}\x1b[35m", *more, cwd=tmp_path)
    assert ran.code == 2
    assert "\x1b[35m" not in ran.out


def test_names_in_a_pack_are_escaped(on_terminal, ingot_cli, tmp_path):
    hostile(tmp_path)
    for options in ([], ["-r"], ["-l"], ["-r", "--json"]):
        ran = on_terminal("ls", "pack.ingot", *options, cwd=tmp_path)
        assert ran.code == 0
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", STYLES.sub("", ran.out))
        assert "\x1b[5m" not in ran.out
    found = json.loads(ingot_cli("ls", "pack.ingot", "-r", "--json", cwd=tmp_path).out)
    assert [one["path"] for one in found] == ["d\x1b[5m", "d\x1b[5m/f\r\x07[red]"]
    ran = on_terminal("extract", "pack.ingot", "d\x1b[5m/none", cwd=tmp_path)
    assert ran.code == 2
    assert "\x1b[5m" not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["info", "x\x1b[31m", "more\x1b[31m"],
        ["--no-such-option\x1b[31m"],
        ["head", "x", "-n", "many\x1b[31m"],
        ["head", "x", "-n", "-1"],
        ["convert", "nowhere.ingot", "x.ingot"],
        ["verify", "nowhere\x1b[31m.ingot"],
        ["split", "x", "nonsense\x1b[31m"],
    ],
)
def test_wrong_usage_is_reported_in_a_few_lines_on_standard_error(ingot_cli, tmp_path, arguments):
    ran = ingot_cli(*arguments, cwd=tmp_path)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("ingot: ")
    assert len(ran.err.splitlines()) <= 3
    assert "Traceback" not in ran.err
    assert "\x1b" not in ran.err
    assert list(tmp_path.iterdir()) == []


def many_records(path, count=20_000):
    with ingot.Writer(path) as writer:
        writer.extend([b"%07d" % k * 40 for k in range(count)])


def test_a_closed_pipe_is_quiet(tmp_path):
    many_records(tmp_path / "x.ingot")
    command = [*COMMAND, "cat", str(tmp_path / "x.ingot")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout.readline().startswith(b'{"bytes": 280')
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(100) == 141


def interrupted(source, target):
    """Convert, and interrupt that once it has begun; return the exit code and what was printed.

    Reads take a second, so that the interrupt is not too late. A shell that starts the tests in
    the background has them ignore interrupts, and so this process.
    """
    script = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ingot.__main__ import main
main()
"""
    command = [sys.executable, "-c", script, "convert", str(source), str(target), "--overwrite"]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(INGOT_DELAY_MS="1000"),
    ) as process:
        draft = target.with_name(f".{target.name}.converting")
        while not draft.exists() and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=200)
    return process.returncode, err


def test_an_interrupt_ends_with_130_and_leaves_no_target(tmp_path):
    many_records(tmp_path / "x.ingot")
    target = tmp_path / "out" / "y.array_record"
    for _ in range(5):
        code, err = interrupted(tmp_path / "x.ingot", target)
        if code != 0:
            break
        target.unlink()  # It was finished before the interrupt came.
    assert code == 130, err
    assert b"Traceback" not in err
    assert list(target.parent.iterdir()) == []


START = """
import sys
from signal import SIGINT, default_int_handler, raise_signal, signal
signal(SIGINT, default_int_handler)
place, *sys.argv = sys.argv[1:]

class Interrupt:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == place:
            raise_signal(SIGINT)

sys.meta_path.insert(0, Interrupt)
"""
AS_MODULE = START + "sys.orig_argv = ['python', '-m', 'ingot', 'version']\nimport runpy\n"
AS_MODULE += "sys.argv[0] = '-m'\nrunpy._run_module_as_main('ingot')"
AS_SCRIPT = START + "from ingot.__main__ import main\nmain()"


@pytest.mark.parametrize("start", [AS_MODULE, AS_SCRIPT])
@pytest.mark.parametrize(
    "place", ["typing", "ingot._core", "numpy", "ingot.cli.app", "ingot.cli.version"]
)
def test_an_interrupt_while_modules_are_loaded_is_quiet(start, place):
    command = [sys.executable, "-c", start, place, "bin/ingot", "version"]
    ran = subprocess.run(command, check=False, capture_output=True, env=environment(), timeout=100)
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, b"", b"")


def test_a_program_that_imports_ingot_keeps_its_own_interrupts():
    script = (
        "import signal; before = signal.getsignal(signal.SIGINT); import ingot, ingot.__main__; "
        "assert signal.getsignal(signal.SIGINT) is before"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def test_text_that_the_encoding_lacks_is_escaped(ingot_cli, data):
    ran = ingot_cli("info", "rows", cwd=data, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert ran.code == 0, ran.err


def test_numbers_that_json_lacks_are_text(ingot_cli, tmp_path):
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"f": "float", "a": "array"}) as writer:
        writer.append({"f": float("nan"), "a": np.array([np.inf, 1.5])})
    found = json.loads(ingot_cli("head", "x.ingot", cwd=tmp_path).out)
    assert found["f"] == "nan"
    assert found["a"]["values"] == ["inf", 1.5]


def test_without_typer_the_command_says_what_to_install(tmp_path):
    script = "import sys\nsys.modules['typer'] = None\nfrom ingot.__main__ import main\nmain()\n"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 1
    hint = "pip install 'ingot-data[cli]' (in a checkout: pip install '.[cli]')"
    assert ran.stderr == f"ingot: the command line requires typer: {hint}\n"


def test_completion_offers_the_commands(ingot_cli):
    ran = ingot_cli(_INGOT_COMPLETE="complete_bash", COMP_WORDS="ingot ver", COMP_CWORD="1")
    assert ran.out.split() == ["verify", "version"]


def test_text_of_any_language_is_readable(ingot_cli, tmp_path):
    text = "\u65e5\u672c \u00e9 \U0001f600 \u202e\x1b"
    with ingot.DatasetWriter(tmp_path / "x.ingot", {"t": "utf8"}) as writer:
        writer.append({"t": text})
    ran = ingot_cli("head", "x.ingot", cwd=tmp_path)
    assert "\u65e5\u672c \u00e9 \U0001f600 \\u202e\\u001b" in ran.out
    assert json.loads(ran.out) == {"t": text}


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_change_no_exit_code(data, closed):
    words = " ".join(map(str, COMMAND))
    for arguments, code in (("verify rows", 0), ("info nowhere", 2), ("--no-such-option", 2)):
        ran = subprocess.run(
            ["/bin/sh", "-c", f"{words} {arguments} {closed}"],
            cwd=data,
            env=environment(),
            capture_output=True,
            check=False,
        )
        assert (ran.returncode, b"Traceback" in ran.stderr) == (code, False)
