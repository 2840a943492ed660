package saltcli

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
)

// LogUnknown names the options that are unknown in the log: as a warning where a known option has almost the same name, else as
// information, since a site may keep data of its own there for config.get.
func (p *Program) LogUnknown(c *conf.Config) {
	for _, d := range c.Unknown(p.Own...) {
		if d.Near != "" {
			p.Log.Warn(d.Error())
		} else {
			p.Log.Info(d.Error())
		}
	}
}

// LogReload says what a configuration that was read again changed, and names what is wrong in it as at the start. suffix tells when the
// changes count.
func (p *Program) LogReload(old, now *conf.Config, suffix string) {
	changes := conf.Changes(old, now)
	if changes == nil {
		p.Log.Info("Configuration reloaded: no option has changed")
	} else {
		p.Log.Warn("Configuration reloaded" + suffix + ": " + strings.Join(changes, ", "))
	}
	for _, n := range now.Notes {
		if n.Option != "" {
			p.Log.Log(context.Background(), n.Level, now.Placed(n))
		}
	}
	p.LogUnknown(now)
}
