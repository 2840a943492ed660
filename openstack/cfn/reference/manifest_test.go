//go:build openstack

package reference

import (
	"encoding/json"
	"os"

	"github.com/brine-salt/brine/openstack/lab"
)

// manifest prints the changes to the host's root in the upper directory of an overlay.
func manifest(upper string) error {
	files, err := lab.Changes(upper, "/")
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(files)
}
