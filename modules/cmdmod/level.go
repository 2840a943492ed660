package cmdmod

import (
	"log/slog"

	"github.com/brine-salt/brine/modules"
)

// level is the log level of a command's output.
type level struct {
	on    bool
	level slog.Level
}

func levelOf(c *modules.Call) level {
	v := c.Value("output_loglevel")
	if v == nil {
		v = c.Keywords["output_loglevel"]
	}
	name, _ := v.(string)
	switch name {
	case "quiet":
		return level{}
	case "all", "garbage", "trace", "profile":
		return level{true, slog.LevelDebug - 4}
	case "debug", "":
		return level{true, slog.LevelDebug}
	case "info":
		return level{true, slog.LevelInfo}
	case "warning":
		return level{true, slog.LevelWarn}
	case "error", "critical":
		return level{true, slog.LevelError}
	}
	c.Logger().Error("Invalid output_loglevel, falling back to info", "level", name)
	return level{true, slog.LevelInfo}
}
