package lowstate

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/restapi/internal/exchange"
	"github.com/brine-salt/brine/master/store"
)

// TestLostDatabaseHasNoAddress: a client is told that the database cannot be reached, but not its address or user.
func TestLostDatabaseHasNoAddress(t *testing.T) {
	driver := errors.New("failed to connect to `user=brine database=salt`: 10.0.0.5:5432: connection refused")
	lost := fmt.Errorf("cannot save job: %w: %w", store.ErrLost, driver)
	for want, err := range map[string]error{
		"the database server cannot be reached":                                                lost,
		"the job could not be stored, and was not sent: the database server cannot be reached": fmt.Errorf("%w: %w", master.ErrNotStored, lost),
	} {
		var got *exchange.Error
		if !errors.As(Refused(err), &got) || got.Code != http.StatusServiceUnavailable || got.Text != want {
			t.Errorf("%v: %+v", err, got)
		}
	}
	full := fmt.Errorf("%w: %w", master.ErrNotStored, errors.New("database or disk is full"))
	var got *exchange.Error
	if !errors.As(Refused(full), &got) || !strings.Contains(got.Text, "disk is full") {
		t.Errorf("%+v", got)
	}
}
