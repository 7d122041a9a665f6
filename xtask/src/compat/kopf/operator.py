"""A kopf operator for Gadgets: each handler leaves a trace that the suite checks."""

import kopf

GADGETS = ("compat.opkit.example", "v1", "gadgets")


@kopf.on.create(*GADGETS)
def created(spec, patch, **_):
    patch.metadata.annotations["compat.opkit.example/created"] = "yes"
    patch.status["size"] = spec["size"]
    return "done"


@kopf.on.update(*GADGETS, field="spec.size")
def resized(old, new, patch, **_):
    patch.status["size"] = new
    patch.status["previousSize"] = old


@kopf.on.delete(*GADGETS)
def deleted(body, retry, **_):
    # The first call fails, so that the suite sees the object with its finalizer.
    if retry < 1:
        raise kopf.TemporaryError("not yet", delay=2)
    kopf.info(body, reason="CleanedUp", message="deleted by the handler")


@kopf.timer(*GADGETS, interval=0.5)
def ticked(status, patch, **_):
    patch.status["ticks"] = status.get("ticks", 0) + 1
