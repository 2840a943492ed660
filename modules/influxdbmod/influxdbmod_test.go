package influxdbmod

import (
	"testing"

	"github.com/brine-salt/brine/modules/modulestest"
)

func TestModule(t *testing.T) {
	modulestest.Run(t, Module)
	modulestest.House(t, Module)
}
