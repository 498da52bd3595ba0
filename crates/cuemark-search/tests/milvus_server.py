"""Starts a Milvus server for tests: `milvus_server.py FOLDER PORT PROGRAMS`.

Keeps its data in FOLDER and its unpacked program in PROGRAMS. Says `READY PROCESS` on standard output once it answers, and
stops the server when standard input ends, so that no server outlives a test that died.
"""

import os
import socket
import sys
import time

from milvus import MilvusServer


def wait_until_open(port):
    """The health that `start` waits for comes before the port is open when a server takes up old data."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)


def main():
    folder, port, programs = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.makedirs(folder, exist_ok=True)
    os.makedirs(programs, exist_ok=True)
    # Unpacking takes longer than starting; once is enough.
    unpacked = os.path.join(folder, "bin")
    if not os.path.lexists(unpacked):
        os.symlink(os.path.abspath(programs), unpacked)
    server = MilvusServer()
    server.set_base_dir(folder)
    server.listen_port = port
    # It comes back as it was after being killed, sooner than the usual half minute for which the dead one keeps its lease.
    server.config.set("common.session.ttl", 10)
    server.start()
    wait_until_open(port)
    print(f"READY {server.server_proc.pid}", flush=True)
    sys.stdin.read()
    # Whoever kills a server wants it dead at once; `stop` waits politely, and not for long enough.
    server.server_proc.kill()
    server.server_proc.wait()


if __name__ == "__main__":
    main()
