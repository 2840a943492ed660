// Package timezone is Salt's state module "timezone": the host's time zone and the clock of its hardware
// (salt/states/timezone.py).
package timezone

import (
	"context"
	"errors"
	"runtime"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is "timezone".
var Module = &states.Module{
	Name: "timezone", Doc: "The host's time zone and the clock of its hardware.",
	Needs: "timezone.get_zone", Otherwise: "timezone module could not be loaded",
	Funcs: []states.Def{{Name: "system", Doc: systemDoc, Params: []modules.Param{{Name: "name"}, {Name: "utc", Default: true}}, Run: system}},
}

const systemDoc = `Have the host in a time zone.

name
    the time zone
utc
    the clock of the hardware is set to UTC`

func system(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	zone, utc := c.Str("name"), c.Value("utc")
	same, err := c.Exec(ctx, "timezone.zone_compare", c.Value("name"))
	var (
		usage *modules.UsageError
		exec  *modules.ExecError
	)
	if errors.As(err, &usage) || errors.As(err, &exec) {
		return ret.As(states.False, "Unable to compare desired timezone '"+zone+"' to system timezone: "+states.ErrorText(err))
	}
	if err != nil {
		return nil, err
	}
	clock, err := c.Exec(ctx, "timezone.get_hwclock")
	if err != nil {
		return nil, err
	}
	now := clock != "localtime"
	// utc is compared as it is: what is true but not True is never what the clock has.
	doUTC := runtime.GOOS != "windows" && pytext.Truth(utc) && utc != now
	text := pytext.Str(utc)
	var messages []string
	if same == true && !doUTC {
		messages = append(messages, "Timezone "+zone+" already set")
		if runtime.GOOS != "windows" && pytext.Truth(utc) {
			messages = append(messages, "UTC already set to "+zone)
		}
		return ret.As(states.True, strings.Join(messages, ", "))
	}
	if c.Test() {
		if same == false {
			messages = append(messages, "Timezone "+zone+" needs to be set")
		}
		if doUTC {
			messages = append(messages, "UTC needs to be set to "+text)
		}
		return ret.As(states.None, strings.Join(messages, ", "))
	}
	ret.Result = states.None
	if same != true {
		done, err := c.Exec(ctx, "timezone.set_zone", c.Value("name"))
		if err != nil {
			return nil, err
		}
		if ret.Result = states.OutcomeOf(pytext.Truth(done)); ret.Result == states.True {
			ret.Changes["timezone"] = c.Value("name")
			messages = append(messages, "Set timezone "+zone)
		} else {
			messages = append(messages, "Failed to set timezone")
		}
	}
	if doUTC {
		done, err := c.Exec(ctx, "timezone.set_hwclock", "UTC")
		if err != nil {
			return nil, err
		}
		if ret.Result = states.OutcomeOf(pytext.Truth(done)); ret.Result == states.True {
			ret.Changes["utc"] = utc
			messages = append(messages, "Set UTC to "+text)
		} else {
			messages = append(messages, "Failed to set UTC to "+text)
		}
	}
	return ret.As(ret.Result, strings.Join(messages, ", "))
}
