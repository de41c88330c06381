"""The command completion: a shell's completion of every command and flag, made from their declarations.

The scripts have all words in them: completing starts no Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated, NamedTuple

import typer
from typer.core import TyperGroup


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


class Word(NamedTuple):
    text: str
    help: str
    takes_value: bool = False
    """True for a flag that is followed by its value, which is completed as a file."""


class Level(NamedTuple):
    """The words that may come after the words of a command."""

    path: str
    """Words before it, without the program's name; empty: none."""
    commands: Sequence[Word]
    flags: Sequence[Word]


def completion(
    context: typer.Context, shell: Annotated[Shell, typer.Argument(help="Shell that the script is for")]
) -> None:
    """Print a script that completes tidemill's commands.

    Evaluate it in ~/.bashrc, in ~/.zshrc after compinit, or write it to
    ~/.config/fish/completions/tidemill.fish.

        eval "$(tidemill completion bash)"
    """
    script: Callable[[Sequence[Level]], Iterator[str]]
    match shell:
        case Shell.BASH:
            script = _bash
        case Shell.ZSH:
            script = _zsh
        case Shell.FISH:
            script = _fish
    typer.echo("\n".join(script(list(_levels(context.find_root().command)))))


def _levels(command: object, path: str = "") -> Iterator[Level]:
    """Yield a level for the command and for each one below it."""
    assert isinstance(command, typer.core.TyperCommand | TyperGroup)
    below = command.commands if isinstance(command, TyperGroup) else {}
    flags = [
        Word(text, parameter.help or "", not parameter.is_flag)
        for parameter in command.params
        if isinstance(parameter, typer.core.TyperOption)
        for text in parameter.opts
        if text.startswith("--")
    ]
    flags.append(Word("--help", "Show the help"))
    commands = [Word(name, (one.help or "").partition("\n")[0]) for name, one in below.items()]
    yield Level(path, commands, flags)
    for name, one in below.items():
        yield from _levels(one, f"{path} {name}".strip())


def _steps(levels: Sequence[Level]) -> str:
    """Return the pattern of the shells' `case` for a command, a space and a command below it."""
    return " | ".join(_quoted(f"{level.path} {word.text}") for level in levels for word in level.commands)


_WALK = """\
    command= previous=
    for word in {words}; do
        case "$command $word" in
            {steps}) command="${{command:+$command }}$word" ;;
        esac
        previous=$word
    done
    case "$previous" in
        {valued}) {files} ;;
    esac
    case "$command" in"""


def _walk(levels: Sequence[Level], words: str, files: str) -> str:
    valued = sorted({word.text for level in levels for word in level.flags if word.takes_value})
    return _WALK.format(words=words, steps=_steps(levels), valued=" | ".join(valued), files=files)


def _bash(levels: Sequence[Level]) -> Iterator[str]:
    yield "_tidemill() {"
    yield "    local command previous word words flags current=${COMP_WORDS[COMP_CWORD]}"
    yield "    COMPREPLY=()"
    yield _walk(levels, '"${COMP_WORDS[@]:1:COMP_CWORD-1}"', "return")
    for level in levels:
        yield f"        {_quoted(level.path)})"
        yield f"            words={_quoted(' '.join(word.text for word in level.commands))}"
        yield f"            flags={_quoted(' '.join(word.text for word in level.flags))} ;;"
    yield "    esac"
    yield "    [[ $current == -* ]] && words=$flags"
    yield '    COMPREPLY=($(compgen -W "$words" -- "$current"))'
    yield "}"
    yield "complete -o default -F _tidemill tidemill"


def _zsh(levels: Sequence[Level]) -> Iterator[str]:
    yield "#compdef tidemill"
    yield "_tidemill() {"
    yield "    local command previous word"
    yield "    local -a commands flags"
    yield _walk(levels, '"${(@)words[2,CURRENT-1]}"', "_files; return")
    for level in levels:
        yield f"        {_quoted(level.path)})"
        yield f"            commands=({' '.join(map(_described, level.commands))})"
        yield f"            flags=({' '.join(map(_described, level.flags))}) ;;"
    yield "    esac"
    yield "    if [[ $words[CURRENT] == -* ]]; then"
    yield "        _describe -o flag flags"
    yield "    elif (( $#commands )); then"
    yield "        _describe command commands"
    yield "    else"
    yield "        _files"
    yield "    fi"
    yield "}"
    yield "compdef _tidemill tidemill"


def _described(word: Word) -> str:
    return _quoted(f"{word.text}:{word.help}")


def _fish(levels: Sequence[Level]) -> Iterator[str]:
    for level in levels:
        seen = [f"__fish_seen_subcommand_from {name}" for name in level.path.split()]
        names = " ".join(word.text for word in level.commands)
        unseen = [f"not __fish_seen_subcommand_from {names}"] if names else []
        condition = "; and ".join([*seen, *unseen])
        begin = f"complete -c tidemill -n {_quoted(condition)}"
        for word in level.commands:
            yield f"{begin} -f -a {word.text} -d {_quoted(word.help)}"
        for word in level.flags:
            value = " -r" if word.takes_value else ""
            yield f"{begin} -l {word.text.removeprefix('--')}{value} -d {_quoted(word.help)}"


def _quoted(text: str) -> str:
    """Return a word in single quotes, as all three shells read it."""
    return "'" + text.replace("'", "'\\''") + "'"
