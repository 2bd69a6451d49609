"""Runs the example receiver of a document on a port, and answers the first attempt of five events with 503."""

import builtins
import re
import sys

document, port = sys.argv[1:]
example = re.search(r"```python\n(.*?)```", open(document).read(), re.S)[1]
example = example.replace("9000", port)
marker = "        body = self.rfile.read("
assert marker in example
refused = set()


def refuses(headers):
    event = headers["webhook-id"]
    if headers["forms-attempt"] == "1" and len(refused) < 5 and event not in refused:
        refused.add(event)
        return True
    return False


builtins.refuses = refuses
guard = """        if refuses(self.headers):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(503)
            self.end_headers()
            return
"""
example = example.replace(marker, guard + marker)
exec(compile(example, document, "exec"), {"__name__": "__main__"})
