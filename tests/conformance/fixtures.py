"""The tools, resources and prompts that the suite knows by name, over the protocol kernel of Brain."""

import json
from collections.abc import Callable
from typing import Any

from django.core import signing

from api.mcp.protocol import INVALID_PARAMS, Method, ProtocolError, Request, Server

Result = dict[str, Any]

PROGRESS = "test_tool_with_progress"
MISSING_CAPABILITY = -32021
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}


def text(words: str) -> Result:
    """A text."""
    return {"type": "text", "text": words}


def embedded(uri: str, kind: str, words: str) -> Result:
    """A resource in a result."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def told(*content: Result) -> Callable[[Request], Result]:
    """A tool that always says this."""
    return lambda _request: {"content": list(content)}


def asked(message: str, name: str, kind: str = "string") -> Result:
    """The wish that the client asks its user."""
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampled(words: str) -> Result:
    """The wish that the client asks its model."""
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


ROOTS: Result = {"method": "roots/list", "params": {}}


def answers(request: Request, *names: str) -> bool:
    """Whether the client sent what was asked for under all of these names."""
    given = request.params.get("inputResponses")
    return isinstance(given, dict) and all(isinstance(given.get(name), dict) for name in names)


def waiting(requests: Result, state: str | None = None) -> Result:
    """The result of a call that needs something from the client first."""
    signed = {} if state is None else {"requestState": signing.Signer().sign(state)}
    return {"resultType": "input_required", "inputRequests": requests, **signed}


def state_of(request: Request) -> str:
    """The state that the client brings back. Raises ProtocolError when it is not as it was given."""
    try:
        return signing.Signer().unsign(str(request.params.get("requestState")))
    except signing.BadSignature as error:
        raise ProtocolError(INVALID_PARAMS, "requestState was changed.") from error


def needing(requests: Result, state: str | None = None) -> Callable[[Request], Result]:
    """A tool that needs all this from the client before it says that it is done."""

    def tool(request: Request) -> Result:
        if not answers(request, *requests):
            return waiting(requests, state)
        if state is not None:
            state_of(request)
        return {"content": [text("state-ok")]}

    return tool


def in_two_rounds(request: Request) -> Result:
    """A tool that asks a second question after the first."""
    if answers(request, "step2") and state_of(request) == "two":
        return {"content": [text("Both steps are done.")]}
    if answers(request, "step1") and state_of(request) == "one":
        return waiting({"step2": asked("Step 2: What is your favorite color?", "color")}, "two")
    return waiting({"step1": asked("Step 1: What is your name?", "name")}, "one")


def what_the_client_can(request: Request) -> Result:
    """A tool that asks only for what the client can do."""
    able = request.params["_meta"][CAPABILITIES]
    wishes = {"sampling": sampled("Hello?"), "elicitation": asked("Hello?", "hello"), "roots": ROOTS}
    return waiting({name: wish for name, wish in wishes.items() if name in able})


def only_with_sampling(request: Request) -> Result:
    """A tool for clients that lend their model."""
    if "sampling" not in request.params["_meta"][CAPABILITIES]:
        raise ProtocolError(MISSING_CAPABILITY, "sampling is needed.", {"requiredCapabilities": {"sampling": {}}})
    return {"content": [text("It can.")]}


TOOLS: dict[str, Callable[[Request], Result]] = {
    "test_simple_text": told(text("This is a simple text response for testing.")),
    "test_image_content": told(IMAGE),
    "test_audio_content": told({"type": "audio", "data": WAV, "mimeType": "audio/wav"}),
    "test_embedded_resource": told(
        embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ),
    "test_multiple_content_types": told(
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
    "test_error_handling": lambda _request: {"content": [text("This tool always fails.")], "isError": True},
    PROGRESS: told(text("Done.")),
    "test_missing_capability": only_with_sampling,
    "test_streaming_elicitation": needing({"user_name": asked("What is your name?", "name")}),
    "test_logging_tool": told(text("Nothing was logged.")),
    "test_input_required_result_elicitation": needing({"user_name": asked("What is your name?", "name")}),
    "test_input_required_result_sampling": needing({"capital_question": sampled("What is the capital of France?")}),
    "test_input_required_result_list_roots": needing({"client_roots": ROOTS}),
    "test_input_required_result_request_state": needing({"confirm": asked("Please confirm", "ok", "boolean")}, "one"),
    "test_input_required_result_tampered_state": needing({"confirm": asked("Please confirm", "ok", "boolean")}, "one"),
    "test_input_required_result_multiple_inputs": needing(
        {
            "user_name": asked("What is your name?", "name"),
            "greeting": sampled("Generate a greeting"),
            "client_roots": ROOTS,
        },
        "one",
    ),
    "test_input_required_result_multi_round": in_two_rounds,
    "test_input_required_result_capabilities": what_the_client_can,
}

RESOURCES: dict[str, Result] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
}
DATA = "test://template/{id}/data"


def said(*contents: Result) -> Result:
    """The result of a prompt."""
    return {"messages": [{"role": "user", "content": content} for content in contents]}


def after_a_question(request: Request) -> Result:
    """A prompt that asks the user for its context."""
    if answers(request, "user_context"):
        return said(text("With this context."))
    return waiting({"user_context": asked("What context should the prompt use?", "context")})


def with_arguments(request: Request) -> Result:
    """A prompt that repeats its arguments."""
    given = request.params["arguments"]
    return said(text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"))


def with_a_resource(request: Request) -> Result:
    """A prompt around a resource."""
    address = request.params["arguments"]["resourceUri"]
    resource = embedded(address, "text/plain", "Embedded resource content for testing.")
    return said(resource, text("Please process the embedded resource above."))


PROMPTS: dict[str, tuple[Callable[[Request], Result], tuple[str, ...]]] = {
    "test_simple_prompt": (lambda _request: said(text("This is a simple prompt for testing.")), ()),
    "test_prompt_with_arguments": (with_arguments, ("arg1", "arg2")),
    "test_prompt_with_embedded_resource": (with_a_resource, ("resourceUri",)),
    "test_prompt_with_image": (lambda _request: said(IMAGE, text("Please analyze the image above.")), ()),
    "test_input_required_result_prompt": (after_a_question, ()),
}


def tools(request: Request) -> Result:
    """`tools/list`."""
    schema = {"type": "object", "properties": {}}
    return {"tools": [{"name": name, "description": f"The fixture {name}", "inputSchema": schema} for name in TOOLS]}


def call(request: Request) -> Result:
    """`tools/call`."""
    name = request.params.get("name")
    if name not in TOOLS:
        raise ProtocolError(INVALID_PARAMS, "There is no such tool.")
    return TOOLS[name](request)


def resources(request: Request) -> Result:
    """`resources/list`."""
    return {"resources": [{"uri": uri, "name": uri, "mimeType": kept["mimeType"]} for uri, kept in RESOURCES.items()]}


def templates(request: Request) -> Result:
    """`resources/templates/list`."""
    return {"resourceTemplates": [{"uriTemplate": DATA, "name": "data", "mimeType": "application/json"}]}


def read(request: Request) -> Result:
    """`resources/read`."""
    uri = str(request.params.get("uri"))
    before, after = DATA.split("{id}")
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}]}
    if uri.startswith(before) and uri.endswith(after):
        number = uri[len(before) : -len(after)]
        data = {"id": number, "templateTest": True, "data": f"Data for ID: {number}"}
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}]}
    raise ProtocolError(INVALID_PARAMS, "There is no such resource.", {"uri": uri})


def prompts(request: Request) -> Result:
    """`prompts/list`."""
    listed = [
        {
            "name": name,
            "description": f"The fixture {name}",
            "arguments": [{"name": argument, "required": True} for argument in arguments],
        }
        for name, (_answer, arguments) in PROMPTS.items()
    ]
    return {"prompts": listed}


def prompt(request: Request) -> Result:
    """`prompts/get`."""
    name = request.params.get("name")
    if name not in PROMPTS:
        raise ProtocolError(INVALID_PARAMS, "There is no such prompt.")
    return PROMPTS[name][0](request)


SERVER = Server(
    info={"name": "fixtures", "version": "1"},
    instructions=lambda: "The fixtures of the official test suite.",
    capabilities={"tools": {}, "resources": {}, "prompts": {}, "completions": {}},
    methods={
        "tools/list": Method(tools, cached=True),
        "tools/call": Method(call),
        "resources/list": Method(resources, cached=True),
        "resources/templates/list": Method(templates, cached=True),
        "resources/read": Method(read, cached=True),
        "prompts/list": Method(prompts, cached=True),
        "prompts/get": Method(prompt),
        "completion/complete": Method(lambda _request: {"completion": {"values": []}}),
    },
)
