//! Whether there is a matrix unit (AMX) to train on, and the right to use it.

#[cfg(target_arch = "x86_64")]
pub use there::Unit;

/// No such processor.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {}

#[cfg(not(target_arch = "x86_64"))]
impl Unit {
    pub fn new() -> Option<Self> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
mod there {
    use std::arch::asm;
    use std::arch::x86_64::__cpuid_count;

    /// A processor whose matrix unit may be used by this process.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Unit(());

    impl Unit {
        /// That of this machine, if it has one and the system lets us use it.
        pub fn new() -> Option<Self> {
            let features = __cpuid_count(7, 0).edx;
            let has = features >> 22 & features >> 24 & 1 == 1 && is_x86_feature_detected!("avx512bf16");
            (has && is_x86_feature_detected!("avx512bw") && permitted()).then_some(Self(()))
        }

        /// Lends all eight tiles, whole ones, to `f`.
        pub fn with_tiles<R>(self, f: impl FnOnce() -> R) -> R {
            /// Gives the tiles back, also when `f` panics.
            struct Release;
            impl Drop for Release {
                fn drop(&mut self) {
                    // SAFETY: the processor has tiles.
                    unsafe { asm!("tilerelease", options(nomem, nostack)) };
                }
            }
            let mut configuration = [0_u8; 64];
            configuration[0] = 1;
            for tile in 0..8 {
                configuration[16 + 2 * tile] = 64;
                configuration[48 + tile] = 16;
            }
            // SAFETY: the processor has tiles, and this process may use them.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(readonly, nostack)) };
            let _release = Release;
            f()
        }
    }

    /// Asks the system for the state of the tiles.
    #[cfg(target_os = "linux")]
    fn permitted() -> bool {
        const ARCH_PRCTL: i64 = 158;
        const REQUEST: i64 = 0x1023;
        const TILE_DATA: i64 = 18;
        let result: i64;
        // SAFETY: the call reads and writes no memory of ours.
        unsafe {
            asm!(
                "syscall",
                inlateout("rax") ARCH_PRCTL => result,
                in("rdi") REQUEST,
                in("rsi") TILE_DATA,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack),
            );
        }
        result == 0
    }

    #[cfg(not(target_os = "linux"))]
    fn permitted() -> bool {
        false
    }
}
