package http_test

import (
	"testing"

	"github.com/brine-salt/brine/states/http"
	"github.com/brine-salt/brine/states/statestest"
)

func TestModule(t *testing.T) { statestest.Run(t, http.Module) }
