package saltcli

import (
	"context"
	"strings"

	"github.com/brine-salt/brine/internal/conf"
)

// LogUnknown logs the unknown options of the configuration. It logs a warning if a known option has almost the same
// name, and otherwise a message at level info, since sites may keep their own data for config.get in the
// configuration.
func (p *Program) LogUnknown(c *conf.Config) {
	for _, d := range c.Unknown(p.Own...) {
		if d.Near != "" {
			p.Log.Warn(d.Error())
		} else {
			p.Log.Info(d.Error())
		}
	}
}

// LogReload logs the changes after a reload of the configuration, and the same problems as at the start. suffix is
// appended to the message; it describes when the changes take effect.
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

// LogBadReload logs that the configuration could not be reloaded. The error has several lines, as at the start: the
// place of the mistake is on its own line.
func (p *Program) LogBadReload(message string, err error) { p.Log.Error(message + ": " + err.Error()) }
