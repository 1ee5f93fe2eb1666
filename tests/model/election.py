"""Election, control log, releases, and pushes that arrive in any order (DESIGN 9, 10).

Three controllers and three brokers that may all be zombies; one partition, which broker A holds under epoch 1.
Opening an epoch closes all below it. Wrong: two brokers that are neither marked nor have released hold the
partition at once.
"""

from typing import NamedTuple, Optional

from search import explore, put

BROKERS = "ABD"
CONTROLLERS = range(3)


class Rules(NamedTuple):
    """True is the design; a mutant takes one away."""

    elections_stay: bool = True  # a mark leaves the directory of a controller's epoch where it is
    no_gaps: bool = True  # an epoch is made only right above the newest
    pushes_only: bool = True  # brokers do not read the control log on the volume
    released_for_ever: bool = True


class Size(NamedTuple):
    elections: int = 3
    epochs: int = 3  # of the partition
    releases: bool = False  # asked of living brokers; without them the search is narrower, and goes deeper


class Assignment(NamedTuple):
    broker: str
    epoch: int


class Controller(NamedTuple):
    phase: str = "idle"  # stand, mark, read, picture, check picture, reign, write, check, push, over
    epoch: int = 0
    dead: bool = False
    at: int = 0  # the lower epoch to mark or to read next
    knows: Optional[Assignment] = None


class Broker(NamedTuple):
    controller: int = 0  # the highest controller epoch that it has heard of
    held: int = 0  # epoch of the partition, 0 for none
    given_up: int = 0  # this one and all below


class Message(NamedTuple):
    controller: int
    kind: str  # push, release
    broker: str
    epoch: int


class State(NamedTuple):
    elections: tuple  # of each controller epoch from 1 on: absent, alive, marked
    logs: tuple  # of each controller epoch: None, "void", or a tuple of assignments. [0] is a dead predecessor's
    controllers: tuple = (Controller(),) * 3
    alive: tuple = (True,) * 3  # sessions of brokers
    brokers: tuple = (Broker(0, 1), Broker(), Broker())
    released: frozenset = frozenset()  # what brokers have answered
    messages: frozenset = frozenset()
    opened: frozenset = frozenset({1})  # epochs that have their directory, made or closed


def start(size):
    return State(("absent",) * size.elections, ((Assignment("A", 1),),) + (None,) * size.elections)


def candidate_steps(state, c, rules):
    """From standing for election to the first act."""
    me = state.controllers[c]

    def become(**changes):
        return {"controllers": put(state.controllers, c, me._replace(**changes))}

    if me.phase == "idle":
        newest = max((n for n, e in enumerate(state.elections, 1) if e != "absent"), default=0)
        for n in (newest + 1,) if rules.no_gaps else (newest + 1, newest + 2):
            if n <= len(state.elections):
                yield f"C{c} will stand for {n}", state._replace(**become(phase="stand", epoch=n))
    elif me.phase == "stand":
        if state.elections[me.epoch - 1] == "absent":
            yield f"C{c} makes election {me.epoch}", state._replace(
                elections=put(state.elections, me.epoch - 1, "alive"), **become(phase="mark", at=me.epoch - 1))
        else:
            yield f"C{c} comes too late for {me.epoch}", state._replace(**become(phase="idle", epoch=0))
    elif me.phase == "mark":
        yield f"C{c} marks election {me.at}", mark_election(state, c, rules)
    elif me.phase == "read":
        log = state.logs[me.at]
        if log is None:
            yield f"C{c} makes control log {me.at} void", state._replace(
                logs=put(state.logs, me.at, "void"), **become(at=me.at - 1))
        elif log == "void":
            yield f"C{c} sees that control log {me.at} is void", state._replace(**become(at=me.at - 1))
        else:
            yield f"C{c} reads control log {me.at}", state._replace(**become(phase="picture", knows=log[-1]))
    elif me.phase == "picture":
        if state.logs[me.epoch] is None:
            yield f"C{c} writes its picture", state._replace(
                logs=put(state.logs, me.epoch, (me.knows,)), **become(phase="check picture"))
        else:
            yield f"C{c} finds its control log closed", state._replace(**become(phase="over"))
    elif me.phase == "check picture":
        yield f"C{c} checks", state._replace(**become(phase="over" if me.dead else "reign"))


def mark_election(state, c, rules):
    me = state.controllers[c]
    if me.at == 0:
        after = me._replace(phase="read", at=me.epoch - 1)
        return state._replace(controllers=put(state.controllers, c, after))
    was = state.elections[me.at - 1]
    controllers = tuple(
        other._replace(dead=True)
        if was == "alive" and i != c and other.epoch == me.at and other.phase not in ("idle", "stand") else other
        for i, other in enumerate(state.controllers))
    now = "absent" if was == "absent" or not rules.elections_stay else "marked"
    return state._replace(elections=put(state.elections, me.at - 1, now),
                          controllers=put(controllers, c, me._replace(at=me.at - 1)))


def reign_steps(state, c, size):
    """A new leader: its predecessor is marked or has released; line, check, push."""
    me = state.controllers[c]

    def become(**changes):
        return {"controllers": put(state.controllers, c, me._replace(**changes))}

    if me.phase == "reign" and me.knows.epoch < size.epochs:
        holder, epoch = me.knows
        heirs = BROKERS if size.releases else ("B" if c == 1 else "D")
        for heir in heirs:
            plan = become(phase="write", knows=Assignment(heir, epoch + 1))
            if heir != holder:
                yield f"C{c} marks {holder}, for {heir}@{epoch + 1}", state._replace(
                    alive=put(state.alive, BROKERS.index(holder), False), **plan)
            if (holder, epoch) in state.released:
                yield f"C{c} knows that {holder} released {epoch}, for {heir}@{epoch + 1}", state._replace(**plan)
        if size.releases and (holder, epoch) not in state.released:
            ask = Message(me.epoch, "release", holder, epoch)
            yield f"C{c} asks {holder} to release {epoch}", state._replace(messages=state.messages | {ask})
    elif me.phase == "write":
        yield f"C{c} writes {me.knows}", state._replace(
            logs=put(state.logs, me.epoch, state.logs[me.epoch] + (me.knows,)), **become(phase="check"))
    elif me.phase == "check":
        yield f"C{c} checks", state._replace(**become(phase="over" if me.dead else "push"))
    elif me.phase == "push":
        push = Message(me.epoch, "push", *me.knows)
        yield f"C{c} pushes {me.knows}", state._replace(messages=state.messages | {push}, **become(phase="reign"))


def broker_steps(state, rules):
    for message in state.messages:
        b = BROKERS.index(message.broker)
        broker = state.brokers[b]
        if message.controller < broker.controller or not state.alive[b]:
            continue
        yield from receive(state._replace(messages=state.messages - {message}), message, b, rules)
    if rules.pushes_only:
        return
    for n, log in enumerate(state.logs[1:], 1):
        if isinstance(log, tuple) and log[-1].epoch > 1:
            push = Message(n, "push", *log[-1])
            yield f"{push.broker} reads control log {n}", state._replace(messages=state.messages | {push})


def receive(state, message, b, rules):
    name, epoch, broker = message.broker, message.epoch, state.brokers[b]

    def become(**changes):
        return {"brokers": put(state.brokers, b, broker._replace(**changes))}

    if message.kind == "release":
        held = 0 if broker.held <= epoch else broker.held
        given_up = max(broker.given_up, epoch) if rules.released_for_ever else broker.given_up
        yield f"{name} releases {epoch}, asked by {message.controller}", state._replace(
            released=state.released | {(name, epoch)},
            **become(controller=message.controller, held=held, given_up=given_up))
    elif epoch <= broker.given_up or broker.held == epoch:
        yield f"{name} refuses {epoch}", state
    elif epoch in state.opened:
        yield f"{name} finds {epoch} closed", state._replace(
            released=state.released | {(name, epoch)},
            **become(controller=message.controller, given_up=max(broker.given_up, epoch)))
    else:
        yield f"{name} opens {epoch}, pushed by {message.controller}", state._replace(
            opened=frozenset(range(1, epoch + 1)), **become(controller=message.controller, held=epoch))


def wrong(state):
    holders = [f"{name}@{broker.held}"
               for name, broker, alive in zip(BROKERS, state.brokers, state.alive) if broker.held and alive]
    return f"two hold the partition: {holders}" if len(holders) > 1 else None


def search(rules=Rules(), size=Size()):
    def steps(state):
        for c in CONTROLLERS:
            yield from candidate_steps(state, c, rules)
            yield from reign_steps(state, c, size)
        yield from broker_steps(state, rules)

    return explore(start(size), steps, wrong)
