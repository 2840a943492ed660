//go:build !custom || viper

package saltcli

import "github.com/spf13/viper"

// newLayers returns layers as viper's. Keys have no separator, since Salt's options hold dots.
func newLayers() layers {
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"))
	v.SetEnvPrefix(envPrefix)
	return v
}
