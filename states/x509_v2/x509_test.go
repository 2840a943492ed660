package x509_v2_test

import (
	"testing"

	"github.com/brine-salt/brine/states/statestest"
	"github.com/brine-salt/brine/states/x509_v2"
)

func TestModule(t *testing.T) { statestest.Run(t, x509_v2.Module) }
