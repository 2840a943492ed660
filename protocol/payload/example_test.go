package payload_test

import (
	"errors"
	"fmt"

	"github.com/brine-salt/brine/protocol/payload"
)

// Text and bytes are one type on the wire: valid UTF-8 is decoded as text, even if it was packed as bytes.
func ExampleUnmarshal() {
	b, err := payload.Marshal(map[string]any{"text": "é", "bytes": []byte("abc"), "binary": []byte{0xff}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := payload.Unmarshal(b)
	fmt.Printf("%#v %v\n", v.(map[string]any)["bytes"], err)
	fmt.Printf("%#v\n", v.(map[string]any)["binary"])
	// Output:
	// "abc" <nil>
	// []byte{0xff}
}

// Five bytes that announce four billion members allocate nothing.
func ExampleUnmarshalLimits() {
	_, err := payload.UnmarshalLimits([]byte("\xdd\xff\xff\xff\xff"), payload.Limits{})
	fmt.Println(err)
	_, err = payload.UnmarshalLimits([]byte("\x93\x01\x02\x03"), payload.Limits{Elements: 2})
	fmt.Println(errors.Is(err, payload.ErrLimit))
	// Output:
	// payload: cannot decode value at byte 5: 4294967295 members announced, 0 bytes left: unexpected EOF
	// true
}
