//go:build !unix

package serve

// descriptorLimit returns no limit; on this system memory is the limit.
func descriptorLimit() int { return maxDescriptors }
