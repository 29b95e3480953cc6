# SPDX-License-Identifier: MIT
"""
File systems that do not answer, like that of a dead file server: one that never does, and one in
memory that stops and continues. The kernel's FUSE protocol (linux/fuse.h), without a library.
"""

import contextlib
import ctypes
import errno
import os
import stat
import struct
import threading

from kymotest import Skip

HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
# numbers of requests; those that have no reply
LOOKUP, FORGET, GETATTR, SETATTR, MKDIR, UNLINK, RMDIR, RENAME, OPEN, READ, WRITE, STATFS = 1, 2, 3, 4, 9, 10, 11, 12, 14, 15, 16, 17
RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, FSYNCDIR, CREATE, INTERRUPT, BATCH_FORGET, RENAME2 = 18, 20, 25, 26, 27, 28, 29, 30, 35, 36, 42, 45
SILENT = (FORGET, INTERRUPT, BATCH_FORGET)
BIG_WRITES, SIZE_IS_SET = 1 << 5, 1 << 3
ROOT = 1
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
        if self.libc.mount(b"hung", self.path, b"fuse", 0, f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()):
            os.close(self.fd)
            raise Skip(f"a FUSE file system cannot be mounted: {os.strerror(ctypes.get_errno())}")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):  # until the file system is unmounted
            while True:
                request = os.read(self.fd, 1 << 18)
                _, opcode, unique, node, *_ = HEADER.unpack_from(request)
                if opcode == INIT:
                    self.reply(unique, struct.pack("<IIIIHHIIHHI28x", 7, 31, 4096, BIG_WRITES, 12, 10, 65536, 1, 1, 0, 0))
                else:
                    self.handle(opcode, unique, node, request[HEADER.size :])

    def reply(self, unique, data=b"", error=0):
        os.write(self.fd, struct.pack("<IiQ", 16 + len(data), -error, unique) + data)

    def handle(self, opcode, unique, node, body):
        self.asked += 1

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        """All requests fail."""
        self.libc.umount2(self.path, FORCE | DETACH)
        self.thread.join()
        os.close(self.fd)


class Node:
    def __init__(self, mode):
        self.mode, self.data, self.names = mode, bytearray(), {}  # names of a directory: numbers of nodes


class Files(HungFiles):
    """
    Files in memory. While `hung` is set, requests wait; go_on() answers those that have waited.
    `available` blocks of 4096 bytes are free; `preferred` is the size that programs should write;
    `counted`: files have a number of blocks.
    """

    available, preferred, counted = 1 << 20, 4096, True

    def __init__(self, path):
        self.nodes, self.hung, self.waiting, self.lock = {ROOT: Node(stat.S_IFDIR | 0o755)}, False, [], threading.Lock()
        super().__init__(path)

    def go_on(self):
        with self.lock:
            self.hung = False
            for request in self.waiting:
                self.answer(*request)
            self.waiting = []

    def handle(self, opcode, unique, node, body):
        with self.lock:
            if self.hung:
                self.asked += 1
                self.waiting.append((opcode, unique, node, body))
            else:
                self.answer(opcode, unique, node, body)

    def answer(self, opcode, unique, node, body):
        if opcode in SILENT:
            return
        error = out = None
        try:
            out = self.carry_out(opcode, node, body)
        except OSError as e:
            error = e.errno
        except KeyError:
            error = errno.ENOENT
        with contextlib.suppress(FileNotFoundError):  # whoever asked does not wait any more
            self.reply(unique, out or b"", error or 0)

    def attributes(self, number):
        node = self.nodes[number]
        size = len(node.data)
        return struct.pack("<6Q10I", number, size, (size + 511) // 512 * self.counted, 0, 0, 0, 0, 0, 0, node.mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, number):
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self.attributes(number)

    def make(self, node, name, mode):
        number = max(self.nodes) + 1
        self.nodes[number] = Node(mode)
        self.nodes[node].names[name] = number
        return number

    def listing(self, node):
        out = b""
        for i, (name, number) in enumerate(self.nodes[node].names.items()):
            out += struct.pack("<QQII", number, i + 1, len(name), stat.S_IFMT(self.nodes[number].mode) >> 12) + name + bytes(-len(name) % 8)
        return out

    def carry_out(self, opcode, node, body):
        name = body.split(b"\0", 1)[0]
        if opcode == LOOKUP:
            return self.entry(self.nodes[node].names[name])
        if opcode == GETATTR:
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == SETATTR:
            valid, _, _, size = struct.unpack_from("<IIQQ", body)
            data = self.nodes[node].data
            if valid & SIZE_IS_SET:
                data[size:] = bytes(max(0, size - len(data)))
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if opcode == MKDIR:
            return self.entry(self.make(node, body[8:-1], stat.S_IFDIR | 0o755))
        if opcode == CREATE:
            return self.entry(self.make(node, body[16:-1], stat.S_IFREG | 0o640)) + bytes(16)
        if opcode in (UNLINK, RMDIR):
            del self.nodes[node].names[name]
            return None
        if opcode in (RENAME, RENAME2):
            old, new = body[8 if opcode == RENAME else 16 :].split(b"\0")[:2]
            self.nodes[struct.unpack_from("<Q", body)[0]].names[new] = self.nodes[node].names.pop(old)
            return None
        if opcode in (OPEN, OPENDIR):
            return bytes(16)
        if opcode == READ:
            offset, size = struct.unpack_from("<8xQI", body)
            return bytes(self.nodes[node].data[offset : offset + size])
        if opcode == READDIR:
            return b"" if struct.unpack_from("<8xQ", body)[0] else self.listing(node)
        if opcode == WRITE:
            offset, size = struct.unpack_from("<8xQI", body)
            data = self.nodes[node].data
            data.extend(bytes(max(0, offset - len(data))))
            data[offset : offset + size] = body[40 : 40 + size]
            return struct.pack("<II", size, 0)
        if opcode == STATFS:
            return struct.pack("<5Q4I24x", 1 << 20, self.available, self.available, 1 << 20, 1 << 20, self.preferred, 255, 4096, 0)
        if opcode in (RELEASE, RELEASEDIR, FLUSH, FSYNC, FSYNCDIR):
            return None
        raise OSError(errno.ENOSYS, "not known")
