"""Takes the messages of the watch under test: one JSON body a line in /seen/received."""

from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Takes everything."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open("/seen/received", "ab") as stream:
            stream.write(body + b"\n")
        self.send_response(200)
        self.end_headers()


HTTPServer(("127.0.0.1", 8080), Handler).serve_forever()
