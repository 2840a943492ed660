// Package payload turns Salt's dialect of msgpack into plain Go values and back.
//
// Salt packs everything that crosses the network in the old msgpack dialect, in which text and bytes are the same
// family (salt/payload.py:dumps with use_bin_type=False), and everything that goes to disk, to the local event bus or
// into a TCP frame in the modern one, which has a type of its own for bytes. [Marshal] writes the first, [MarshalBin]
// the second. On reading, Salt decides by looking: a byte string that is valid UTF-8 becomes text, any other stays
// bytes (salt/transport/frame.py:decode_embedded_strs). [Unmarshal] does so; [UnmarshalRaw] and [UnmarshalDisk] are
// Salt's two other readers.
//
// # Values
//
// Decoded values are nil, bool, int64 (uint64 only above the range of int64), float64, string, []byte, []any,
// map[string]any, time.Time for Salt's extension 78, and [Constant] for its extension 79. A map with at least one key
// that is not text is a map[any]any. A text key that is not valid UTF-8 is kept as a Go string holding these bytes.
// The content of any other extension is treated as a byte string, as Salt does.
//
// # Limits
//
// Every decoder works within [Limits]: depth of nesting, number of values, bytes. A container is refused before memory
// is set aside for it when the rest of the input cannot hold its members, so memory is at most about 130 times the
// input. What a length field announces never decides how much is allocated. No input makes a decoder panic.
//
// This is the only package that imports a msgpack library, and it uses only that library's low-level decoder.
package payload
