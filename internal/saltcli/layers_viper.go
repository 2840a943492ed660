//go:build !custom || viper

package saltcli

import "github.com/spf13/viper"

// newLayers returns viper's layers. The key delimiter is a zero byte, since names of Salt's options may contain dots.
func newLayers() layers {
	v := viper.NewWithOptions(viper.KeyDelimiter("\x00"))
	v.SetEnvPrefix(envPrefix)
	return v
}
