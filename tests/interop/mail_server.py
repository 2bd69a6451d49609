"""Receives one message on a port, with STARTTLS and AUTH required, and checks every header and body of it."""

import asyncio
import email
import email.policy
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

port, folder = sys.argv[1:]
received = asyncio.Event()
faults = []

TEXT = "Name: Bo ☕\n.\n..\nFrom me\n\n" + "long " * 400
HTML = "<p>Name: &lt;Bo&gt; ☕</p>\n<p>" + "é" * 2000 + "</p>\n"
HEADERS = {
    "From": "Example Forms <forms@example.com>",
    "Subject": "New response: Café = ?utf-8?q?=0D=0ABcc:_x?= Bcc: x@example.com",
    "Date": "Tue, 14 Nov 2023 22:13:20 +0000",
    "Message-ID": "<dlv_interop@example.com>",
    "Auto-Submitted": "auto-generated",
    "X-Auto-Response-Suppress": "All",
    "To": "ann@example.com, nobody@example.com, bob@xn--bcher-kva.example",
    "Reply-To": "bo@example.org",
    "MIME-Version": "1.0",
}


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (b"me", b"correct horse"))


def expect(what, actual, expected):
    if actual != expected:
        faults.append(f"{what}: {actual!r}, expected {expected!r}")


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address == "nobody@example.com":
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server, session, envelope):
        check(session, envelope)
        received.set()
        return "250 queued"


def check(session, envelope):
    expect("authenticated", session.authenticated, True)
    expect("encrypted", session.ssl is not None, True)
    expect("sender", envelope.mail_from, "forms@example.com")
    expect("recipients", envelope.rcpt_tos, ["ann@example.com", "bob@xn--bcher-kva.example"])
    expect("longest line is short", max(map(len, envelope.content.split(b"\r\n"))) <= 998, True)
    expect("ASCII", envelope.content.isascii(), True)
    message = email.message_from_bytes(envelope.content, policy=email.policy.default)
    headers = {name: str(value) for name, value in message.items() if name != "Content-Type"}
    expect("headers", headers, HEADERS)
    expect("number of headers", len(message.items()), len(HEADERS) + 1)
    expect("type", message.get_content_type(), "multipart/alternative")
    parts = list(message.iter_parts())
    expect("types", [part.get_content_type() for part in parts], ["text/plain", "text/html"])
    for part, body in zip(parts, [TEXT, HTML]):
        expect(part.get_content_type(), part.get_content().replace("\r\n", "\n").rstrip("\n"), body.rstrip("\n"))
    for entity in [message, *parts]:
        expect("defects", (entity.defects, [value.defects for value in entity.values() if value.defects]), ([], []))


async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")

    def session():
        return SMTP(
            Handler(), tls_context=context, require_starttls=True, authenticator=authenticate, auth_required=True
        )

    server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", int(port))
    print("ready", flush=True)
    async with server:
        await asyncio.wait_for(received.wait(), 120)
        # The answer has to reach the client.
        await asyncio.sleep(1)
    sys.exit("\n".join(faults) or None)


asyncio.run(main())
