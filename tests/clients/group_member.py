"""A member of a group until SIGTERM, upon which it leaves: group_member.py LIBRARY BROKER TOPIC GROUP SESSION-MS.

Prints what it gets and what it reads, as test_groups.py says.
"""

import json
import signal
import sys


def tell(**event):
    print(json.dumps(event), flush=True)


class KafkaPython:
    def __init__(self, broker, topic, group, session_ms):
        import kafka
        # So short a session must not be shorter than a request's limit.
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=broker, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False,
            session_timeout_ms=session_ms, heartbeat_interval_ms=200, reconnect_backoff_max_ms=200)

        class Listener(kafka.ConsumerRebalanceListener):
            def on_partitions_revoked(self, revoked):
                pass

            def on_partitions_assigned(self, assigned):
                tell(assigned=[partition.partition for partition in assigned])
        self.consumer.subscribe([topic], listener=Listener())

    def turn(self):
        import kafka
        batches = self.consumer.poll(timeout_ms=100)
        for records in batches.values():
            for record in records:
                tell(partition=record.partition, offset=record.offset, value=record.value.decode())
        if batches:
            try:
                self.consumer.commit()
            except kafka.errors.KafkaError as error:
                tell(trouble=str(error))

    def close(self):
        self.consumer.close()


class Confluent:
    def __init__(self, broker, topic, group, session_ms):
        import confluent_kafka
        self.errors = confluent_kafka.KafkaException
        self.consumer = confluent_kafka.Consumer({
            "bootstrap.servers": broker, "group.id": group, "auto.offset.reset": "earliest",
            "enable.auto.commit": False, "session.timeout.ms": session_ms, "heartbeat.interval.ms": 200,
            "reconnect.backoff.max.ms": 200, "log_level": 0})
        self.consumer.subscribe([topic], on_assign=lambda _, assigned: tell(
            assigned=[partition.partition for partition in assigned]))

    def turn(self):
        message = self.consumer.poll(0.1)
        if message is None or message.error():
            return
        tell(partition=message.partition(), offset=message.offset(), value=message.value().decode())
        try:
            self.consumer.commit(message, asynchronous=False)
        except self.errors as error:
            tell(trouble=str(error))

    def close(self):
        self.consumer.close()


def main():
    library, broker, topic, group, session_ms = sys.argv[1:]
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    member = {"kafka-python": KafkaPython, "librdkafka": Confluent}[library](
        broker, topic, group, int(session_ms))
    while not ended:
        member.turn()
    member.close()


if __name__ == "__main__":
    main()
