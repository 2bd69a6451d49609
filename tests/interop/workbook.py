"""Answers that are hard to export, and the check of the workbook that has them.

workbook.py write    prints the answers, one JSON object a line
workbook.py check ANSWERS CSV WORKBOOK    compares them with the exports
"""

import csv
import json
import sys
import zipfile

import openpyxl
from openpyxl.utils.escape import unescape

LIMIT = 32_767

TEXTS = [
    "plain",
    "=1+1",
    '=HYPERLINK("http://127.0.0.1","x")',
    "+49 30 1234",
    "-x",
    "@SUM(A1)",
    "\t=1",
    "＝1+1",
    "-5",
    "007",
    "true",
    "1e5",
    "#N/A",
    "2026-11-20",
    "<b>&amp;\"'</b> ]]> <![CDATA[x]]>",
    "two\nlines, a carriage\rreturn and\r\nboth",
    "tab\there",
    " spaces  around ",
    "_x0041_ and _x000D_ and __x005F_x0041__ and _xFFFF_",
    "not characters \ufffe\uffff",
    "a\u2028b\u2029c\ufeffd\u200be\u202ef",
    "Ünïcödé e\u0301 ﬁ ẞ",
    "العربية עברית فارسی",
    "中文 日本語 한국어 𠀀𪛖",
    "हिन्दी বাংলা தமிழ் ไทย ខ្មែរ မြန်မာ",
    "Русский Ελληνικά Հայերեն ქართული አማርኛ ᏣᎳᎩ",
    "😀 👩‍👩‍👧‍👦 🇩🇪 👍🏽 ❤️ 𝔘𝔫𝔦 \U0010fffd",
    "x" * LIMIT,
    "y" * (LIMIT + 1),
    "😀" * (LIMIT // 2 + 1),
]


def expected(text):
    """The text of the cell of an answer."""
    units = len(text.encode("utf-16-le")) // 2
    if units > LIMIT:
        text = text.encode("utf-16-le")[: 2 * (LIMIT - 1)].decode("utf-16-le", "ignore") + "…"
    return text.replace("\r\n", "\n")


def write():
    for index, text in enumerate(TEXTS):
        answers = {"words": text}
        if index == 0:
            answers |= {"score": 7, "amount": -12.5, "again": True, "colours": ["red", "green"]}
        print(json.dumps(answers))


def check(answers, table, workbook):
    with open(answers) as file:
        sent = [json.loads(line) for line in file]
    with open(table, newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert zipfile.ZipFile(workbook).testzip() is None
    book = openpyxl.load_workbook(workbook)
    [sheet] = book.worksheets
    assert sheet.freeze_panes == "A2" and sheet["A1"].font.b and not sheet["A2"].font.b
    header, *rows = sheet.iter_rows()
    names = [cell.value for cell in header]
    assert names == list(lines[0]) == ["id", "submitted_at", "words", "score", "amount", "again", "colours"], names
    assert len(rows) == len(lines) == len(sent)
    # The newest comes first.
    for row, line, answer in zip(rows, lines, reversed(sent)):
        cells = dict(zip(names, row))
        assert cells["id"].value == line["id"] and cells["submitted_at"].value == line["submitted_at"]
        words = cells["words"]
        assert words.data_type == "s", (words.data_type, answer)
        # Excel decodes these escapes when it reads; openpyxl leaves that to its callers.
        assert unescape(words.value) == expected(answer["words"]), (words.value[:99], answer["words"][:99])
        assert len(words.value.encode("utf-16-le")) // 2 <= LIMIT
    types = [(cell.value, cell.data_type) for cell in rows[-1][3:]]
    assert types == [(7, "n"), (-12.5, "n"), (True, "b"), ('["red","green"]', "s")], types
    # Without answers there are no cells.
    assert [cell.value for cell in rows[0][3:]] == [None] * 4
    print(f"{len(sent)} answers read back from the workbook")


if sys.argv[1] == "write":
    write()
else:
    check(*sys.argv[2:])
