# SPDX-License-Identifier: MIT
"""
A file system that does not answer, like that of a dead file server: the kernel's FUSE protocol,
without a library.
"""

import contextlib
import ctypes
import os
import struct
import threading

from kymotest import Skip

HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
INIT = 26
FORCE, DETACH = 1, 2  # of umount2(2): force ends the connection


class HungFiles:
    """
    Replies that the file system exists, and to nothing else. `asked` is the number of requests that
    wait for a reply.
    """

    def __init__(self, path):
        self.path, self.asked, self.libc = str(path).encode(), 0, ctypes.CDLL(None, use_errno=True)
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        except OSError as e:
            raise Skip(f"/dev/fuse cannot be opened: {e.strerror}") from e
        if self.libc.mount(b"hung", self.path, b"fuse", 0, f"fd={self.fd},rootmode=40000,user_id=0,group_id=0".encode()):
            os.close(self.fd)
            raise Skip(f"a FUSE file system cannot be mounted: {os.strerror(ctypes.get_errno())}")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):  # until the file system is unmounted
            while True:
                _, opcode, unique, *_ = HEADER.unpack_from(os.read(self.fd, 1 << 17))
                if opcode == INIT:
                    out = struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, 0, 12, 10, 4096, 1, 1, 0, 0)
                    os.write(self.fd, struct.pack("<IiQ", 16 + len(out), 0, unique) + out)
                else:
                    self.asked += 1

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        """All requests fail."""
        self.libc.umount2(self.path, FORCE | DETACH)
        self.thread.join()
        os.close(self.fd)
