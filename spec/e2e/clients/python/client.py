"""A client as Python programs write them, against the server of $KUBECONFIG.

Lists, watches and writes built-in and custom objects with the official client. Says what it did, a
line each; ends with an exception at the first thing that is not as it should be.
"""

import threading
import uuid

from kubernetes import client, config, dynamic, watch

GROUP, VERSION, PLURAL = "cnat.programming-kubernetes.info", "v1alpha1", "ats"
OBJECTS = 20


def at(name):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "At",
        "metadata": {"name": name},
        "spec": {"schedule": "2099-01-01T00:00:00Z", "command": "true"},
    }


def config_map(name):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"of": "python"}), data={"a": "1"})


def writes(namespace):
    core = client.CoreV1Api()
    made = core.create_namespaced_config_map(namespace, config_map("one"))
    made.data["b"] = "2"
    core.replace_namespaced_config_map("one", namespace, made)
    patched = core.patch_namespaced_config_map("one", namespace, {"data": {"c": "3"}})
    assert patched.data == {"a": "1", "b": "2", "c": "3"}, patched.data
    try:
        core.replace_namespaced_config_map("one", namespace, made)
        raise AssertionError("an old version was taken")
    except client.ApiException as refused:
        assert refused.status == 409, refused
    core.delete_namespaced_config_map("one", namespace)
    assert core.list_namespaced_config_map(namespace, label_selector="of=python").items == []


def pages(namespace):
    core = client.CoreV1Api()
    for i in range(OBJECTS):
        core.create_namespaced_config_map(namespace, config_map(f"page-{i:02}"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, label_selector="of=python", limit=7, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert names == [f"page-{i:02}" for i in range(OBJECTS)], names


def custom_objects(namespace):
    custom = client.CustomObjectsApi()
    where = (GROUP, VERSION, namespace, PLURAL)
    version = custom.list_namespaced_custom_object(*where)["metadata"]["resourceVersion"]

    def write():
        custom.create_namespaced_custom_object(*where, at("one"))
        custom.patch_namespaced_custom_object(*where, "one", {"spec": {"command": "echo changed"}})
        custom.delete_namespaced_custom_object(*where, "one")

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    stream = watch.Watch()
    for event in stream.stream(
        custom.list_namespaced_custom_object, *where, resource_version=version, timeout_seconds=30
    ):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    writer.join()
    assert seen == ["ADDED", "MODIFIED", "DELETED"], seen


def dynamic_client(namespace):
    ats = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{GROUP}/{VERSION}", kind="At")
    applied = ats.server_side_apply(body=at("two"), namespace=namespace, field_manager="python")
    assert applied.metadata.name == "two"
    assert [item.metadata.name for item in ats.get(namespace=namespace).items] == ["two"]
    ats.delete(name="two", namespace=namespace)


def main():
    config.load_kube_config()
    core = client.CoreV1Api()
    assert client.VersionApi().get_code().major == "1"
    for step in (writes, pages, custom_objects, dynamic_client):
        namespace = "python-" + uuid.uuid4().hex[:8]
        core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=namespace)))
        step(namespace)
        core.delete_namespace(namespace)
        print("ok", step.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
