package governor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
)

// Volumes measures how full the volumes are on which some folders of this machine stand, by the names of the resources.
func Volumes(folders map[string]string) Source {
	return func(context.Context) (map[string]float64, error) {
		values := map[string]float64{}
		var failures []error
		for resource, folder := range folders {
			used, free, err := measureVolume(folder)
			if err != nil {
				failures = append(failures, err)
				continue
			}
			values[resource] = percent(used, used+free)
		}
		return values, errors.Join(failures...)
	}
}

// measureVolume counts as df does: what is kept for root is neither used nor free.
func measureVolume(folder string) (used, free int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, fmt.Errorf("measure the volume of %s: %w", folder, err)
	}
	return int64(s.Blocks-s.Bfree) * int64(s.Bsize), int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // Types differ by system.
}

// VolumeBytes gives the size of the volume on which a folder stands.
func VolumeBytes(folder string) (int64, error) {
	used, free, err := measureVolume(folder)
	return used + free, err
}

// VolumeFree gives how many bytes are free on the volume on which a folder stands.
func VolumeFree(folder string) (int64, error) {
	_, free, err := measureVolume(folder)
	return free, err
}

// OnVolume gives the threshold of a volume of a size: High where less than the reserve is free at the latest, the other values lower by
// as much (section 14.2). At the floor a fifth of the reserve is left.
func (t Threshold) OnVolume(sizeBytes int64) Threshold {
	if t.ReserveBytes <= 0 || sizeBytes <= 0 {
		return t
	}
	full := func(reserve int64) float64 { return percent(sizeBytes-min(reserve, sizeBytes), sizeBytes) }
	if lower := t.HighAt - math.Floor(full(t.ReserveBytes)); lower > 0 {
		t.HighAt, t.MediumAt = t.HighAt-lower, t.MediumAt-lower
		t.MediumBelow, t.NormalBelow = t.MediumBelow-lower, t.NormalBelow-lower
	}
	if t.FloorAt > 0 {
		t.FloorAt = max(min(t.FloorAt, full(t.ReserveBytes/5)), t.HighAt)
	}
	return t
}
