// Package payload turns Go values into Salt's msgpack dialect and back. It is the only importer of the msgpack library.
//
// One mapping between Python's and Go's values, everywhere:
//
//	nil, bool            nil, bool
//	int                  int64; uint64 above math.MaxInt64
//	float                float64
//	str and bytes        string when valid UTF-8, []byte otherwise (Salt tells them apart the same way)
//	list, tuple, set     []any
//	dict                 map[string]any when every key is text, map[any]any otherwise
//	datetime             time.Time (extension 78)
//
// Salt's sources: salt/payload.py, salt/transport/frame.py.
package payload
