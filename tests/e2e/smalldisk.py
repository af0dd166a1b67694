"""A small file system, and how it gets full."""
import os
import shutil
import subprocess


def small_disk(where, size, mode=0o711):
    """A file system of its own; False where none can be mounted."""
    where.mkdir(mode=mode, exist_ok=True)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode:o}", "none", str(where)], capture_output=True)
    return done.returncode == 0


def fill(where):
    """All of it, but for what somebody else takes meanwhile."""
    with open(where / "filler", "ab", buffering=0) as out:
        while shutil.disk_usage(where).free:
            try:
                os.posix_fallocate(out.fileno(), 0, os.fstat(out.fileno()).st_size + shutil.disk_usage(where).free)
            except OSError:
                break
