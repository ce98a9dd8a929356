#!/bin/sh
# Checks a receipt on standard input against a public key with openssl alone, as
# the DSSE specification says: the key signs not the payload, but its
# pre-authentication encoding. Prints the payload. Exits with 1 unless all is well.
#
#   verify.sh PUBLIC_KEY < RECEIPT
set -eu
key=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/envelope"
field() { sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p' "$dir/envelope"; }

type=$(field payloadType)
field payload | openssl base64 -d -A >"$dir/payload"
field sig | openssl base64 -d -A >"$dir/sig"
{ printf 'DSSEv1 %d %s %d ' "${#type}" "$type" "$(wc -c <"$dir/payload")"; cat "$dir/payload"; } >"$dir/signed"
openssl pkeyutl -verify -pubin -inkey "$key" -rawin -in "$dir/signed" -sigfile "$dir/sig" >&2

# The signature does not cover what the envelope says of its key.
id=$(openssl pkey -pubin -in "$key" -outform DER | openssl dgst -sha256 -r | cut -d ' ' -f 1)
[ "$id" = "$(field keyid)" ] || { echo "signed by key $(field keyid), not by $id" >&2; exit 1; }
[ "$type" = application/vnd.in-toto+json ] || { echo "the payload is of type $type" >&2; exit 1; }
cat "$dir/payload"
