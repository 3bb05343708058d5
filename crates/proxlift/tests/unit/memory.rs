//! Memory of containers, of both versions of control groups, and memory that is not there.

use super::*;
use std::fs;

/// A file system with these files below its root.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn left(files: &[(&str, &str)]) -> Option<u64> {
    of_container(tree(files).path())
}

#[test]
fn groups_of_version_2_are_read_up_to_their_root() {
    let group = [
        ("proc/self/cgroup", "0::/a/b\n"),
        ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ("sys/fs/cgroup/a/b/memory.current", "300\n"),
        ("sys/fs/cgroup/a/memory.max", "1000\n"),
        ("sys/fs/cgroup/a/memory.current", "700\n"),
        ("sys/fs/cgroup/a/memory.stat", "anon 400\ninactive_file 100\nactive_file 50\n"),
    ];
    assert_eq!(left(&group), Some(400));
    // Without a limit anywhere there is none.
    assert_eq!(left(&group[..3]), None);
    // A tighter one below counts first.
    let tight = [("sys/fs/cgroup/a/b/memory.max", "350\n")];
    assert_eq!(left(&[&group[..], &tight].concat()), Some(50));
    // More taken than allowed leaves nothing.
    assert_eq!(left(&[&group[..], &[("sys/fs/cgroup/a/b/memory.max", "100")]].concat()), Some(0));
    // In a container, its own group stands at the root, and the path is the host's.
    let inside = [
        ("proc/self/cgroup", "0::/docker/0123\n"),
        ("sys/fs/cgroup/memory.max", "500"),
        ("sys/fs/cgroup/memory.current", "100"),
    ];
    assert_eq!(left(&inside), Some(400));
}

#[test]
fn groups_of_version_1_are_read_too() {
    let group = [
        ("proc/self/cgroup", "12:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/0123\n1:name=systemd:/y\n0::/\n"),
        ("sys/fs/cgroup/memory/docker/0123/memory.limit_in_bytes", "2000\n"),
        ("sys/fs/cgroup/memory/docker/0123/memory.usage_in_bytes", "1500\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
    ];
    assert_eq!(left(&group), Some(500));
    let name = "sys/fs/cgroup/memory/docker/0123/memory.stat";
    let stat = [(name, "cache 9\ninactive_file 200\ntotal_inactive_file 300\n")];
    assert_eq!(left(&[&group[..], &stat].concat()), Some(800));
}

#[test]
fn nonsense_in_a_group_is_no_limit() {
    assert_eq!(left(&[]), None);
    for text in ["", "0", "0:", "::", "0::\n", "x:memory", "0::/../../a"] {
        assert_eq!(left(&[("proc/self/cgroup", text)]), None, "{text}");
    }
    let broken = [
        ("proc/self/cgroup", "0::/a"),
        ("sys/fs/cgroup/a/memory.max", "much"),
        ("sys/fs/cgroup/a/memory.current", "1"),
    ];
    assert_eq!(left(&broken), None);
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    for len in [1 << 45, usize::MAX / 8, usize::MAX] {
        let refused = or_error(|| Ok(crate::field::Aligned::<f32>::zeros(len))).unwrap_err().to_string();
        assert!(refused.contains("no memory left"), "{refused}");
    }
    assert!(or_error(|| Ok(zeros::<f64>(3))).unwrap() == [0.0; 3]);
    // From another thread, and a panic stays one.
    let refused = or_error(|| {
        rayon::join(|| (), || zeros::<f32>(1 << 60));
        Ok(())
    });
    assert!(refused.is_err());
    assert!(catch_unwind(|| or_error::<()>(|| panic!("a bug"))).is_err());
}
