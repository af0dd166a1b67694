"""What each of Maui's commands says with --json: keys in order, each with its type.

s text, i whole number, n number, b true or false, t moment (ISO 8601 with zone), d length of time
([[D:]HH:]MM:SS or INFINITY); with ? also null. A list is of rows, at least one; --csv has the same
columns, and a line for each. New columns are added here as well."""
import re

QUEUE = ("section:s job_id:s grid_job_id:s? user:s group:s account:s? class:s? qos:s? state:s procs:i remaining:d? "
         "walltime:d submit_time:t start_time:t? priority:i xfactor:n host:s? backfilled:b preemptible:b "
         "reserved_start:t? reason_code:s? reason:s? partition:s? holds:s?")
JOB = ("job_id:s grid_job_id:s? component:s submitter:s? state:s user:s group:s? account:s? class:s? qos:s? procs:i "
       "walltime:d submit_time:t eligible_time:t? start_time:t? end_time:t? exit_code:i bypass:i start_count:i pe:n "
       "priority:i system_priority:i held:n reserved_start:t? reason_code:s? reason:s? clears_time:t? limit:s? "
       "limit_level:s? limit_object:s? limit_value:i? limit_usage:i? limit_request:i? idle_procs:i "
       "feasible_procs:i start_estimate:t? rm_job_id:s? defer_count:i "
       "memory_kept_by:s? processors_kept_by:s? cpu_time_kept_by:s? processes_kept_by:s? directory:s? output_max_mb:i? "
       "partition:s? policy_level:s? reservation:s? reservation_access:s?")
NODE = ("node:s state:s procs:i dedicated_procs:i memory_mb:i dedicated_memory_mb:i swap_mb:i disk_mb:i speed:n "
        "load:n priority:i features:s? address:s jobs:s? used_memory_mb:i? partition:s classes:s? networks:s? "
        "gres:s? switches:s? opsys:s? arch:s? reason:s?")
RESERVATION = ("reservation_id:s type:s job_state:s? start_time:t end_time:t? duration:d nodes:i procs:i node:s? "
               "tasks:i? acl:s? flags:s? owner:s? resources:s? tasks_wanted:i tasks_up:i used_by:s? standing:s? "
               "charge:s? group:s?")
CREDENTIAL = ("name:s priority:n qdef:s? qlist:s? target:n target_type:s? limits:s? flags:s? qtweight:n qttarget:n "
              "xfweight:n xftarget:n")
SUMS = ("jobs:i jobs_percent:n successful:i ph_requested:n ph_requested_percent:n ph_dedicated:n "
        "ph_dedicated_percent:n avg_xfactor:n max_xfactor:n avg_queue_hours:n max_queue_hours:n efficiency:n "
        "wc_accuracy:n backfilled:i avg_bypass:n preempted:i qos_delivered:n")
CREDENTIAL_SUMS = ("name:s active_jobs:i active_procs:i active_proc_hours:n fs_target:n? fs_target_type:s? " + SUMS)
PROFILE = "name:s? time:t? " + SUMS
GRID = "statistic:s procs:i? walltime:d? jobs:i value:n"
SUMMARY = ("site:s time:t active_for:d started_time:t since_time:t iteration:i eligible_jobs:i idle_jobs:i "
           "active_jobs:i completed_jobs:i successful_jobs:i preempted_jobs:i avg_queue_hours:n max_queue_hours:n "
           "avg_xfactor:n max_xfactor:n avg_bypass:n max_bypass:i ph_dedicated:n ph_total:n ph_preempted:n "
           "procs_active:i procs:i nodes_active:i nodes:i wc_accuracy:n efficiency:n min_utilization:n? "
           "min_utilization_iteration:i backlog_hours:n avg_backlog_hours:n")
SCHEDULE = ("mode:s iteration:i stopped:b stop_at:i? stop_time:t? resume_time:t? time:t interval:d over:b acts:s? "
            "started:i alike:i differences:s?")
TRANSFER = ("component:s direction:s path:s state:s bytes_done:i bytes:i? rate:i end_time:t? url:s kept_time:t? reason:s?")
PART = "value:n percent:n"
START = "job_id:s procs:i walltime:d start_time:t completion_time:t reason:s?"
CHANGE, OBJECT = "job_id:s done:b", "name:s attribute:s value:s done:b"


def priority(*parts):
    return {"job_id": "s", "priority": "i", "system": "b", **{p: fields(PART) for p in parts}}


def fields(text):
    """The keys of a row, in order, with their types."""
    return dict(f.rsplit(":", 1) for f in text.split())


TYPES = {"s": str, "i": int, "n": (int, float), "b": bool, "t": str, "d": str}
PATTERNS = {"t": re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"),
            "d": re.compile(r"^(-?(\d+:)*\d+:\d\d|INFINITY)$")}


def check(value, schema, where="$"):
    """What is wrong, or None."""
    if isinstance(schema, list):
        if not isinstance(value, list) or not value:
            return f"{where}: wanted rows, found {value!r:.80}"
        return next((w for i, v in enumerate(value) if (w := check(v, schema[0], f"{where}[{i}]"))), None)
    if isinstance(schema, dict):
        if not isinstance(value, dict) or list(value) != list(schema):
            return f"{where}: wanted the keys {' '.join(schema)}, found {' '.join(value)}"
        return next((w for k in schema if (w := check(value[k], schema[k], f"{where}.{k}"))), None)
    kind = schema.rstrip("?")
    if kind == "any":
        return None
    if value is None:
        return None if schema.endswith("?") else f"{where} is null"
    if not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "b"):
        return f"{where}: wanted {kind}, found {value!r:.80}"
    if kind in PATTERNS and not PATTERNS[kind].match(value):
        return f"{where}: wanted {kind}, found {value!r:.80}"
    return None
