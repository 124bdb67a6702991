"""Verifies or signs a test result with the reference implementations of DSSE and in-toto alone.

    reference.py verify VKEY FILE   prints the subjects and the predicate of the envelope in FILE as one JSON object
    reference.py sign SEED KEYID    prints an envelope signed by the Ed25519 key with this seed (hexadecimal)
"""
from __future__ import annotations

import base64
import json
import pathlib
import sys
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from google.protobuf import json_format
from in_toto_attestation.predicates.test_result.v0 import test_result_pb2
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"


def verify(vkey: str, file: str) -> dict[str, Any]:
    name, key_id, encoded = vkey.split("+", 2)
    public = base64.b64decode(encoded)[1:]   # behind the kind of the key
    key = SSlibKey(f"{name}+{key_id}", "ed25519", "ed25519", {"public": public.hex()})
    envelope = Envelope.from_dict(json.loads(pathlib.Path(file).read_text()))
    envelope.verify([key], 1)
    assert envelope.payload_type == PAYLOAD_TYPE, envelope.payload_type
    statement = Statement.copy_from_pb(json_format.Parse(envelope.payload, statement_pb2.Statement()))
    statement.validate()
    assert statement.pb.predicate_type == TEST_RESULT, statement.pb.predicate_type
    predicate = json_format.MessageToDict(statement.pb.predicate)
    known = {name: value for name, value in predicate.items() if name != "muniment"}   # the one extension
    json_format.ParseDict(known, test_result_pb2.TestResult())   # refuses unknown members and wrong types
    return {"subjects": [json_format.MessageToDict(one) for one in statement.pb.subject], "predicate": predicate}


def sign(seed: str, key_id: str) -> dict[str, Any]:
    subject = ResourceDescriptor(name="adder", digest={"gitCommit": "d20ace79"})
    predicate = test_result_pb2.TestResult(result="PASSED", configuration=[ResourceDescriptor(uri="https://ci.example/run/18").pb],
                                           passed_tests=["tests.test_adder.test_small_numbers", "tests.test_adder.test_zero"])
    statement = Statement([subject.pb], TEST_RESULT, json_format.MessageToDict(predicate))
    statement.validate()
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(seed))
    envelope = Envelope(json_format.MessageToJson(statement.pb).encode(), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(private, SSlibKey.from_crypto(private.public_key(), key_id)))
    return envelope.to_dict()


if __name__ == "__main__":
    print(json.dumps({"verify": verify, "sign": sign}[sys.argv[1]](*sys.argv[2:])))
