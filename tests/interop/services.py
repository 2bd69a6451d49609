"""Receivers of the kinds of integrations, each judged by a package that others wrote, and the check of what they received.

services.py PORT SMTP_PORT FOLDER    receives
services.py check ID WORDS RECEIVED WORKBOOK    checks
"""

import asyncio
import datetime
import email
import email.policy
import http.server
import json
import os
import ssl
import sys
import threading
import urllib.parse

received = {"hook": [], "slack": [], "rows": [], "mail": []}


def save(folder):
    with open(f"{folder}/received.json", "w") as file:
        json.dump(received, file)


class Receiver(http.server.BaseHTTPRequestHandler):
    """A webhook, Slack (docs.slack.dev, incoming webhooks) and the Google Sheets API v4 (developers.google.com/workspace/sheets)."""

    protocol_version = "HTTP/1.1"
    folder = None
    token = "ya29.interop"

    def answer(self, status, body="", kind="application/json"):
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urllib.parse.urlsplit(self.path)
        if path.path == "/hook":
            self.webhook(body)
        elif path.path.startswith("/services/"):
            self.slack(body)
        elif path.path == "/google/token":
            self.google_token(body)
        elif path.path.startswith("/google/v4/spreadsheets/"):
            self.sheets(path, body)
        else:
            self.answer(404)
        save(self.folder)

    do_GET = do_POST = do_PUT = handle_any

    def webhook(self, body):
        from standardwebhooks.webhooks import Webhook

        event = Webhook(os.environ["WEBHOOK_SECRET"]).verify(body, dict(self.headers))
        received["hook"].append(event)
        self.answer(204)

    def slack(self, body):
        from slack_sdk.models.blocks import Block

        message = json.loads(body)
        assert self.headers["content-type"].startswith("application/json")
        blocks = Block.parse_all(message["blocks"])
        assert len(blocks) == len(message["blocks"]) <= 50
        for block in blocks:
            block.validate_json()
        received["slack"].append(message)
        self.answer(200, "ok", "text/html")

    def google_token(self, body):
        import jwt

        form = urllib.parse.parse_qs(body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"], form
        key = open(f"{self.folder}/account.pub").read()
        claims = jwt.decode(form["assertion"][0], key, algorithms=["RS256"], options={"verify_aud": False})
        assert claims["iss"] == "forms@test.iam.gserviceaccount.com", claims
        assert claims["scope"] == "https://www.googleapis.com/auth/spreadsheets", claims
        assert claims["aud"] == "https://oauth2.googleapis.com/token", claims
        assert 0 < claims["exp"] - claims["iat"] <= 3600, claims
        assert jwt.get_unverified_header(form["assertion"][0])["kid"] == "k1"
        self.answer(200, {"access_token": self.token, "token_type": "Bearer", "expires_in": 3599})

    def sheets(self, path, body):
        assert self.headers["authorization"] == f"Bearer {self.token}"
        target = urllib.parse.unquote(path.path.split("/values/")[1])
        query = urllib.parse.parse_qs(path.query)
        rows = received["rows"]
        if self.command == "GET":
            values = rows[:1] if target.endswith("1:1") else [[row[0] for row in rows]]
            return self.answer(200, {"range": target, "majorDimension": "ROWS", "values": values} if rows else {"range": target})
        values = json.loads(body)["values"]
        assert target.endswith(":append"), self.path
        if rows:
            assert query["valueInputOption"] == ["USER_ENTERED"] and query["insertDataOption"] == ["INSERT_ROWS"], query
            # Behind an apostrophe it is a text; without, only a date is sent.
            for text in (cell for row in values for cell in row if isinstance(cell, str)):
                assert text.startswith("'") or datetime.datetime.fromisoformat(text), text
            values = [[cell.removeprefix("'") if isinstance(cell, str) else cell for cell in row] for row in values]
        else:
            assert query["valueInputOption"] == ["RAW"] and "insertDataOption" not in query, query
        for row in values:
            assert all(len(str(cell)) <= 50_000 for cell in row)
        rows.extend(values)
        self.answer(200, {"updates": {"updatedRows": len(values)}})


async def serve_smtp(port, folder):
    from aiosmtpd.smtp import SMTP, AuthResult

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")

    def authenticate(server, session, envelope, mechanism, data):
        return AuthResult(success=(data.login, data.password) == (b"me", b"correct horse"))

    class Handler:
        greylisted = set()

        async def handle_RCPT(self, server, session, envelope, address, options):
            assert session.authenticated and session.ssl
            if address not in self.greylisted:
                self.greylisted.add(address)
                return "451 greylisted, try again later"
            envelope.rcpt_tos.append(address)
            return "250 ok"

        async def handle_DATA(self, server, session, envelope):
            received["mail"].append({"to": envelope.rcpt_tos, "content": envelope.content.decode("ascii")})
            save(folder)
            return "250 queued"

    def session():
        return SMTP(Handler(), tls_context=context, require_starttls=True, authenticator=authenticate, auth_required=True)

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


def check(submission, words, path, workbook):
    with open(path) as file:
        found = json.load(file)
    [event], [message], [header, row], [mail] = found["hook"], found["slack"], found["rows"], found["mail"]
    assert event["data"]["submission"]["id"] == submission
    assert event["data"]["submission"]["answers"]["words"] == words
    check_slack(message, submission)
    assert header == ["id", "submitted_at", "name", "address", "score", "words"], header
    assert row[0] == submission and row[2:] == ["Ann <!here>", "ann@example.com", 5, words], row
    check_mail(mail, submission)
    check_workbook(workbook, submission)
    print("one submission reached a webhook, Slack, Google Sheets and a mailbox, and is in the workbook")


def check_slack(message, submission):
    text = json.dumps(message["blocks"])
    markup = [part["text"] for block in message["blocks"] for part in block.get("fields", []) if part["type"] == "mrkdwn"]
    assert markup == ["<mailto:ann@example.com|ann@example.com>"], markup
    assert submission in text and "<!" not in message["text"], message
    header = message["blocks"][0]
    assert header["type"] == "header" and header["text"]["text"] == "Ann <!here> gave 5", header


def check_mail(mail, submission):
    assert mail["to"] == ["team@example.com"], mail["to"]
    assert all(len(line) <= 998 for line in mail["content"].split("\r\n"))
    message = email.message_from_string(mail["content"], policy=email.policy.default)
    expected = {
        "From": "Example Forms <forms@example.com>",
        "To": "team@example.com",
        "Reply-To": "ann@example.com",
        "Subject": "New response: Visit – ann@example.com",
        "Auto-Submitted": "auto-generated",
        "X-Auto-Response-Suppress": "All",
    }
    for name, value in expected.items():
        assert message.get_all(name) == [value], (name, message.get_all(name))
    assert message["Bcc"] is None and message["Message-ID"].endswith("@example.com>"), message.items()
    assert message["List-Id"].startswith("<frm_") and message["List-Id"].endswith(".example.com>"), message["List-Id"]
    assert message["Date"].datetime, message["Date"]
    text, html = [part.get_content() for part in message.iter_parts()]
    assert submission in text and "Bcc: x@example.com" in text and "☕" in text
    assert "&lt;b&gt;" in html and "<b>" not in html and "href" not in html
    for entity in message.walk():
        assert not entity.defects and not any(value.defects for value in entity.values()), entity.defects


def check_workbook(path, submission):
    import openpyxl

    rows = list(openpyxl.load_workbook(path).active.iter_rows())
    assert len(rows) == 2, rows
    cells = {head.value: cell for head, cell in zip(*rows)}
    assert cells["id"].value == submission and cells["score"].value == 5
    assert cells["words"].data_type == "s" and cells["words"].value.startswith("=1+1"), cells["words"].value


def main():
    if sys.argv[1] == "check":
        return check(*sys.argv[2:])
    port, smtp, Receiver.folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    asyncio.run(serve_smtp(smtp, Receiver.folder))


main()
