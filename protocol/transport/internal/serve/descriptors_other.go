//go:build !unix

package serve

// descriptorLimit returns maxDescriptors: on this system memory is the limit.
func descriptorLimit() int { return maxDescriptors }
