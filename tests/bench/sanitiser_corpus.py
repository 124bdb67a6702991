"""Generates the corpus of `scripts/bench sanitiser`: 60 classes of secrets by the public descriptions of their formats, half of them
obfuscated, and ordinary text and code of this machine. It does not read the rules."""
from __future__ import annotations

import base64
import hashlib
import json
import pathlib
import random
import re
import string
import uuid
from typing import Any, Callable, Iterator

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
BASE62 = string.ascii_letters + DIGITS
HEX = DIGITS + "abcdef"
URL64 = BASE62 + "-_"
STD64 = BASE62 + "+/"
Generator = Callable[[random.Random], str]


def some(alphabet: str, size: int, most: int = 0) -> Generator:
    return lambda r: "".join(r.choice(alphabet) for _ in range(r.randint(size, most or size)))


def pattern(text: str, **parts: Generator) -> Generator:
    """Fills {name} with what a generator of `parts` returns."""
    return lambda r: re.sub(r"\{(\w+)\}", lambda found: parts[found[1]](r), text)


def a_uuid(r: random.Random) -> str:
    return str(uuid.UUID(int=r.getrandbits(128), version=4))


def luhn(digits: str) -> str:
    total = sum(int(d) if i % 2 else sum(divmod(2 * int(d), 10)) for i, d in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def card(r: random.Random) -> str:
    prefix, size = r.choice([("4", 16), ("51", 16), ("55", 16), ("2221", 16), ("34", 15), ("37", 15), ("6011", 16)])
    number = luhn(prefix + some(DIGITS, size - len(prefix) - 1)(r))
    style = r.randrange(3)
    if style == 0:
        return number
    groups = re.findall(".{1,4}", number) if size == 16 else [number[:4], number[4:10], number[10:]]
    return " -"[style - 1].join(groups)


def iban(r: random.Random) -> str:
    country, bank = r.choice([("DE", some(DIGITS, 18)), ("FR", some(DIGITS, 23)), ("GB", pattern("{b}{n}", b=some(UPPER, 4), n=some(DIGITS, 14))),
                              ("CH", some(DIGITS, 17)), ("ES", some(DIGITS, 20)), ("NL", pattern("{b}{n}", b=some(UPPER, 4), n=some(DIGITS, 10)))])
    account = bank(r)
    number = "".join(str(int(c, 36)) for c in account + country + "00")
    whole = country + f"{98 - int(number) % 97:02}" + account
    return whole if r.random() < .5 else " ".join(re.findall(".{1,4}", whole))


def phone(r: random.Random) -> str:
    d = lambda n: some(DIGITS, n)(r)   # noqa: E731
    return r.choice([lambda: f"+49 {r.choice(['30', '89', '171', '1520'])} {d(7)}", lambda: f"+1 {r.randint(201, 989)}-{r.randint(201, 989)}-{d(4)}",
                     lambda: f"+44 20 {d(4)} {d(4)}", lambda: f"+33{r.randint(1, 7)}{d(8)}", lambda: f"({r.randint(201, 989)}) {r.randint(201, 989)}-{d(4)}",
                     lambda: f"+41 79 {d(3)} {d(2)} {d(2)}"])()


NAMES = "alice bob carol dmitri erika farid grace henrik ines jamal kira lars maria noor olga pavel quentin rosa sven tara".split()
WORDS = "orion billing ledger atlas harbor falcon kestrel marble quartz saffron tundra willow zephyr cobalt ember".split()


def name(r: random.Random) -> str:
    return r.choice(NAMES)


def word(r: random.Random) -> str:
    return r.choice(WORDS)


def email(r: random.Random) -> str:
    return f"{name(r)}{r.choice(['.', '_', ''])}{word(r)}{r.choice(['', str(r.randint(1, 99))])}@{word(r)}{r.choice(['-labs', 'corp', ''])}.{r.choice(['com', 'org', 'io', 'de', 'co.uk', 'net'])}"


def password(r: random.Random) -> str:
    return r.choice([lambda: name(r).title() + r.choice("!?#$%") + str(r.randint(100, 9999)), lambda: some(BASE62 + "!#%&*", 12, 20)(r) + "7!",
                     lambda: word(r) + str(r.randint(10, 99)) + r.choice("!$*")])()


def jwt(r: random.Random) -> str:
    part = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")   # noqa: E731
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part({'sub': str(r.randint(1, 9**9)), 'name': name(r), 'iat': r.randint(1500000000, 1800000000)})}.{some(URL64, 43)(r)}"


def pem(r: random.Random) -> str:
    kind = r.choice(["RSA ", "EC ", "", "OPENSSH ", "ENCRYPTED "])
    body = base64.b64encode(r.randbytes(r.randint(120, 400))).decode()
    lines = "\n".join(re.findall(".{1,64}", body))
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


def wif(r: random.Random) -> str:
    raw = b"\x80" + r.randbytes(32) + (b"\x01" if r.random() < .5 else b"")
    raw += hashlib.sha256(hashlib.sha256(raw).digest()).digest()[:4]
    number, out = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        out = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"[digit] + out
    return out


def ipv4(r: random.Random) -> str:
    return f"{r.choice([10, 172, 192, 203, 85, 141])}.{r.randint(20, 255)}.{r.randint(0, 255)}.{r.randint(1, 254)}"


def ipv6(r: random.Random) -> str:
    group = lambda: f"{r.randint(1, 65535):x}"   # noqa: E731
    return r.choice([lambda: "2001:db8:" + ":".join(group() for _ in range(6)), lambda: f"fe80::{group()}:{group()}:{group()}", lambda: f"2a02:{group()}::{group()}"])()


def home_path(r: random.Random) -> str:
    return r.choice([lambda: f"/home/{name(r)}/{word(r)}/{word(r)}.txt", lambda: f"/Users/{name(r)}/Documents/{word(r)}.docx", lambda: f"~/.config/{word(r)}/keys.json"])()


def system_path(r: random.Random) -> str:
    return r.choice([lambda: f"/etc/{word(r)}/{word(r)}.conf", lambda: f"/var/lib/{word(r)}/{name(r)}.db", lambda: f"/srv/{word(r)}/{word(r)}/data", lambda: f"/opt/{word(r)}/bin/{name(r)}"])()


def windows_path(r: random.Random) -> str:
    return r.choice([lambda: f"C:\\Users\\{name(r)}\\{word(r)}\\{word(r)}.xlsx", lambda: f"\\\\{word(r)}-fs01\\{word(r)}\\{name(r)}", lambda: f"D:\\{word(r)}\\{word(r)}\\secret.txt"])()


ASSIGN = ("{k} = \"{s}\"", "{k}={s}", "{k}: {s}", "export {K}='{s}'", "\"{k}\": \"{s}\"")
PLAIN = ("the key is {s} for now", "token: {s}", "curl -H 'X-Auth: {s}' https://api.example.com", "{s}", "I pasted {s} by mistake", "KEY={s}\n", "see ({s}) in the log")
SAY = ("write to {s} please", "{s}", "contact: {s}", "it is {s}, I think", "(see {s})", "\"{s}\"")


def named(words: str) -> tuple[str, ...]:
    """Returns contexts in which the name of the service announces the value."""
    low = words.replace(" ", "_")
    return tuple(context.replace("{k}", low).replace("{K}", low.upper()) for context in ASSIGN)


# Class → (generator of the value, contexts).
CLASSES: dict[str, tuple[Generator, tuple[str, ...]]] = {
    "aws access key": (pattern("{p}{k}", p=lambda r: r.choice(["AKIA", "ASIA"]), k=some(UPPER + "234567", 16)), PLAIN),
    "aws secret key": (some(STD64, 40), named("aws secret access key")),
    "google api key": (pattern("AIza{k}", k=some(URL64, 35)), PLAIN),
    "google oauth secret": (pattern("GOCSPX-{k}", k=some(URL64, 28)), PLAIN),
    "azure storage key": (lambda r: base64.b64encode(r.randbytes(64)).decode(), ("DefaultEndpointsProtocol=https;AccountName=orion;AccountKey={s};EndpointSuffix=core.windows.net",)),
    "azure client secret": (pattern("{a}8Q~{b}", a=some(BASE62, 3), b=some(BASE62 + "_.-", 34)), PLAIN),
    "github token": (pattern("gh{p}_{k}", p=some("pousr", 1), k=some(BASE62, 36)), PLAIN),
    "github fine-grained token": (pattern("github_pat_{a}_{b}", a=some(BASE62, 22), b=some(BASE62, 59)), PLAIN),
    "gitlab token": (pattern("glpat-{k}", k=some(URL64, 20)), PLAIN),
    "bitbucket token": (pattern("ATBB{k}", k=some(BASE62, 32)), PLAIN),
    "atlassian token": (pattern("ATATT3xFfGF0{k}", k=some(URL64, 170)), PLAIN),
    "slack token": (pattern("xoxb-{a}-{b}-{c}", a=some(DIGITS, 12), b=some(DIGITS, 13), c=some(BASE62, 24)), PLAIN),
    "slack webhook": (pattern("https://hooks.slack.com/services/T{a}/B{b}/{c}", a=some(UPPER + DIGITS, 10), b=some(UPPER + DIGITS, 10), c=some(BASE62, 24)), PLAIN),
    "discord token": (pattern("M{a}.{b}.{c}", a=some(BASE62, 25), b=some(BASE62, 6), c=some(URL64, 38)), PLAIN),
    "telegram token": (pattern("{a}:AA{b}", a=some("123456789", 10), b=some(URL64, 33)), PLAIN),
    "stripe key": (pattern("{k}_live_{b}", k=lambda r: r.choice(["sk", "rk"]), b=some(BASE62, 24, 99)), PLAIN),
    "twilio key": (pattern("SK{k}", k=some(HEX, 32)), PLAIN),
    "sendgrid key": (pattern("SG.{a}.{b}", a=some(URL64, 22), b=some(URL64, 43)), PLAIN),
    "mailgun key": (pattern("key-{k}", k=some(HEX, 32)), PLAIN),
    "mailchimp key": (pattern("{k}-us{n}", k=some(HEX, 32), n=some("123456789", 1)), PLAIN),
    "openai key": (lambda r: r.choice([lambda: "sk-proj-" + some(URL64, 74, 156)(r), lambda: f"sk-{some(BASE62, 20)(r)}T3BlbkFJ{some(BASE62, 20)(r)}"])(), PLAIN),
    "anthropic key": (pattern("sk-ant-api03-{k}AA", k=some(URL64, 93)), PLAIN),
    "hugging face token": (pattern("hf_{k}", k=some(string.ascii_letters, 34)), PLAIN),
    "deepseek key": (pattern("sk-{k}", k=some(HEX, 32)), PLAIN),
    "groq key": (pattern("gsk_{k}", k=some(BASE62, 52)), PLAIN),
    "replicate token": (pattern("r8_{k}", k=some(BASE62, 37)), PLAIN),
    "npm token": (pattern("npm_{k}", k=some(BASE62, 36)), PLAIN),
    "pypi token": (pattern("pypi-AgEIcHlwaS5vcmc{k}", k=some(URL64, 80, 150)), PLAIN),
    "rubygems key": (pattern("rubygems_{k}", k=some(HEX, 48)), PLAIN),
    "docker token": (pattern("dckr_pat_{k}", k=some(URL64, 27)), PLAIN),
    "digitalocean token": (pattern("dop_v1_{k}", k=some(HEX, 64)), PLAIN),
    "heroku key": (a_uuid, named("heroku api key")),
    "cloudflare token": (some(URL64, 40), named("cloudflare api token")),
    "vault token": (pattern("hvs.{k}", k=some(URL64, 90, 120)), PLAIN),
    "databricks token": (pattern("dapi{k}", k=some(HEX, 32)), PLAIN),
    "datadog key": (some(HEX, 32), named("datadog api key")),
    "new relic key": (pattern("NRAK-{k}", k=some(UPPER + DIGITS, 27)), PLAIN),
    "grafana token": (pattern("glsa_{a}_{b}", a=some(BASE62, 32), b=some(HEX, 8)), PLAIN),
    "sentry token": (pattern("sntryu_{k}", k=some(HEX, 64)), PLAIN),
    "postman key": (pattern("PMAK-{a}-{b}", a=some(HEX, 24), b=some(HEX, 34)), PLAIN),
    "linear key": (pattern("lin_api_{k}", k=some(BASE62, 40)), PLAIN),
    "notion token": (pattern("ntn_{k}", k=some(BASE62, 46)), PLAIN),
    "shopify token": (pattern("shpat_{k}", k=some(HEX, 32)), PLAIN),
    "square token": (pattern("sq0atp-{k}", k=some(URL64, 22)), PLAIN),
    "age key": (pattern("AGE-SECRET-KEY-1{k}", k=some("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)), PLAIN),
    "jwt": (jwt, PLAIN),
    "private key": (pem, ("{s}", "key: |\n{s}\n", "cat id_rsa\n{s}")),
    "bitcoin key": (wif, PLAIN),
    "bearer token": (some(URL64 + "+/.", 32, 60), ("Authorization: Bearer {s}", "curl -H \"Authorization: Bearer {s}\" https://api.example.com/v1")),
    "url password": (password, ("postgres://app:{s}@db.example.com:5432/main", "https://deploy:{s}@git.example.com/x.git", "redis://default:{s}@cache:6379/0")),
    "password assignment": (password, ("password = \"{s}\"", "DB_PASSWORD={s}", "passwd: '{s}'", "\"password\": \"{s}\"")),
    "random key": (some(BASE62, 32, 48), ("api_key = \"{s}\"", "client_secret: '{s}'", "SECRET_KEY={s}", "\"access_token\": \"{s}\"")),
    "e-mail": (email, SAY),
    "phone": (phone, SAY),
    "card": (card, SAY),
    "iban": (iban, SAY),
    "ipv4": (ipv4, ("host {s} is down", "ssh {s}", "{s}:8080", "from {s} port 22")),
    "ipv6": (ipv6, ("host {s} is down", "[{s}]:443", "addr={s}")),
    "path": (lambda r: r.choice([home_path, system_path, windows_path])(r), ("open {s} first", "{s}", "error in \"{s}\"", "file={s}")),
    "user id": (lambda r: r.choice([lambda: str(r.randint(10000, 99999999)), lambda: f"{r.choice('CUEA')}{r.randint(1000, 99999)}", lambda: a_uuid(r)])(),
                ("user_id={s}", "customer id: {s}", "\"userId\": \"{s}\"", "employee number {s}", "account_id = {s}")),
}

ALIKE = dict(zip("aeopcxyijsABEKMHOPCTX", "аеорсхуіјѕАВЕКМНОРСТХ"))


def zero_width(secret: str, r: random.Random) -> str:
    at = sorted(r.sample(range(1, len(secret)), min(3, len(secret) - 1)), reverse=True)
    for place in at:
        secret = secret[:place] + r.choice("\u200b\u200c\u2060\ufeff\u00ad") + secret[place:]
    return secret


def confusable(secret: str, r: random.Random) -> str:
    style = r.randrange(3)
    if style == 0:
        return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in secret)
    changed = "".join(ALIKE.get(c, c) for c in secret)
    return changed if changed != secret else zero_width(secret, r)


def split(secret: str, r: random.Random) -> str:
    style = r.randrange(4)
    size = max(3, len(secret) // r.randint(2, 4))
    parts = [secret[i:i + size] for i in range(0, len(secret), size)]
    return ("\n", " ", "\" + \"", "\\\n  ")[style].join(parts)


def percent(secret: str, r: random.Random) -> str:
    return "".join(f"%{byte:02{r.choice('xX')}}" for byte in secret.encode())


def json_escapes(secret: str, r: random.Random) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in secret) if r.random() < .5 else "".join(f"\\x{ord(c):02x}" for c in secret)


OBFUSCATIONS: dict[str, Callable[[str, random.Random], str]] = {
    "base64": lambda s, r: base64.b64encode(s.encode()).decode(),
    "base64 of the whole": lambda s, r: base64.b64encode(s.encode()).decode(),
    "hex": lambda s, r: s.encode().hex() if r.random() < .6 else " ".join(f"{b:02x}" for b in s.encode()),
    "percent": percent,
    "json": json_escapes,
    "zero width": zero_width,
    "confusable": confusable,
    "split": split,
    "reversed": lambda s, r: s[::-1],
}


def positive(kind: str, how: str, r: random.Random) -> dict[str, Any]:
    make, contexts = CLASSES[kind]
    secret, context = make(r), r.choice(contexts)
    begin, end = context.index("{s}"), len(context) - context.index("{s}") - 3
    # Where the context is what reveals the secret, it is hidden with it, and so are texts that are encoded as a whole.
    revealing = contexts not in (PLAIN, SAY) and kind not in ("private key", "ipv4", "path", "ipv6")
    text = context.replace("{s}", secret)
    if how == "none":
        hidden = secret
    elif how in ("base64", "base64 of the whole", "hex", "percent", "json", "reversed") and (revealing or how == "base64 of the whole"):
        if how in ("percent", "json", "reversed"):   # these keep the place of the secret
            parts = [OBFUSCATIONS[how](part, r) for part in (context[:begin], secret, context[len(context) - end:] if end else "")]
            first, hidden, last = reversed(parts) if how == "reversed" else parts
            prefix = len(first.encode())
            return {"class": kind, "how": how, "text": first + hidden + last, "begin": prefix, "end": prefix + len(hidden.encode())}
        hidden, begin, end, context = OBFUSCATIONS[how](text, r), 0, 0, "{s}"
    elif how == "split" and revealing:
        return positive(kind, "zero width", r)
    else:
        hidden = OBFUSCATIONS[how](secret, r)
    text = context[:begin] + hidden + (context[len(context) - end:] if end else "")
    prefix = len(text[:begin].encode())
    return {"class": kind, "how": how, "text": text, "begin": prefix, "end": prefix + len(hidden.encode())}


def positives(seed: int, count: int) -> Iterator[dict[str, Any]]:
    r = random.Random(seed)
    kinds, hows = list(CLASSES), list(OBFUSCATIONS)
    for i in range(count):
        kind, turn = kinds[i % len(kinds)], i // len(kinds)
        yield positive(kind, "none" if turn % 2 == 0 else hows[(turn // 2 + i) % len(hows)], r)


SOURCES = (("/usr/share/doc", "*"), ("/usr/include", "*.h"), ("/usr/lib/python3", "*.py"), ("/usr/lib/python3.11", "*.py"), ("/usr/share/perl", "*.p[lm]"))


def negatives(seed: int, count: int, more: tuple[pathlib.Path, ...] = ()) -> Iterator[dict[str, Any]]:
    """Yields pieces of 1 to 12 lines of files of this machine."""
    r = random.Random(seed)
    files = []
    for folder, glob in [*SOURCES, *((str(one), "*") for one in more)]:
        found = sorted(path for path in pathlib.Path(folder).rglob(glob) if path.is_file() and path.suffix not in (".gz", ".png", ".pyc", ".so"))
        files.append(r.sample(found, min(len(found), 1500)))
    files = [group for group in files if group]
    made = 0
    while made < count:
        path = r.choice(r.choice(files))
        try:
            with path.open(errors="strict") as file:
                lines = file.read(200_000).splitlines(keepends=True)
        except (OSError, UnicodeDecodeError):
            continue
        if not lines:
            continue
        at = r.randrange(len(lines))
        text = "".join(lines[at:at + r.randint(1, 12)])[:4000]
        if text.strip():
            made += 1
            yield {"class": "negative", "how": str(path), "text": text}
