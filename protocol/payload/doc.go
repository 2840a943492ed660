// Package payload converts between Go values and Salt's dialect of msgpack.
//
// Salt packs everything that crosses the network in the old msgpack dialect, in which text and bytes are one type
// (salt/payload.py:dumps with use_bin_type=False). Files, the local event bus and TCP frames use the modern dialect,
// which has a separate type for bytes. [Marshal] writes the first, [MarshalBin] the second. When it reads, Salt
// decides by the content: a byte string that is valid UTF-8 becomes text, any other stays bytes
// (salt/transport/frame.py:decode_embedded_strs). [Unmarshal] does so; [UnmarshalRaw] and [UnmarshalDisk] are Salt's
// two other readers.
//
// # Values
//
// Decoded values are nil, bool, int64 (uint64 only above the range of int64), float64, string, []byte, []any (also
// for Python's tuples and sets), map[string]any, time.Time for Salt's extension 78 (datetime), and [Constant] for its
// extension 79. A map with at least one key that is not text is a map[any]any. A text key that is not valid UTF-8 is
// a Go string of the same bytes. The content of any other extension is treated as a byte string, as in Salt.
//
// # Limits
//
// Every decoder works within [Limits]: depth of nesting, number of values, bytes. A container whose members cannot
// fit into the rest of the input is refused before memory is allocated for it, so memory is at most about 130 times
// the input. No input makes a decoder panic.
//
// This is the only package that imports a msgpack library, and it uses only that library's low-level decoder.
package payload
