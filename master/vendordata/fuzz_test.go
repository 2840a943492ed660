package vendordata

import (
	"bytes"
	"errors"
	"net/http"
	"testing"

	"github.com/brine-salt/brine/protocol"
)

// FuzzRead: a body yields either an instance with a valid id and grains within the limits, or an answer that
// explains what is wrong with it.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		`{"instance-id": "i1", "project-id": "p1", "image-id": "x", "hostname": "h", "metadata": {"a": "b"}, "boot-roles": "member,reader"}`,
		`{"instance-id": "../x", "project-id": "p1"}`, `{"instance-id": "i1", "project-id": "p1", "boot-roles": ["a", 1, null]}`, `{"metadata": [1]}`, `[]`, `{"instance-id": 5}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := read(bytes.NewReader(body))
		if err != nil {
			var status *statusError
			if !errors.As(err, &status) || status.code != http.StatusBadRequest || status.text == "" {
				t.Fatal(err)
			}
			return
		}
		if protocol.ValidID(q.Instance) != nil || q.Project == "" {
			t.Fatalf("instance %q of project %q", q.Instance, q.Project)
		}
		about, ok := q.grains()["openstack"].(map[string]any)
		if !ok || about["instance_id"] != q.Instance {
			t.Fatalf("grains of %q: %v", q.Instance, about)
		}
	})
}
