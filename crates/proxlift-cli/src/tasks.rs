//! Which picture is read from where and written to where, settled and checked before any work starts.

use proxlift::image::io::Format;
use proxlift::{Error, Result, dataset::images_below};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// One picture to denoise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub input: PathBuf,
    pub output: PathBuf,
}

impl Task {
    /// Whether the result replaces its original.
    pub fn is_in_place(&self) -> bool {
        !is_standard(&self.output) && identity(&self.input) == identity(&self.output)
    }
}

/// What is added to the names of results beside their originals.
const SUFFIX: &str = "-denoised";

/// Where a result goes that is named after its original, with something added to the name.
pub fn beside(original: &Path, suffix: &str) -> PathBuf {
    let mut name = original.file_stem().unwrap_or_default().to_os_string();
    name.push(suffix);
    if let Some(extension) = original.extension() {
        name.push(".");
        name.push(extension);
    }
    original.with_file_name(name)
}

/// Whether a path stands for standard input or output. A file of that name is `./-`.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Pairs every input with its output.
///
/// Inputs are files, folders, searched recursively, or `-` alone. Without `out`, `name.ext` becomes `name-denoised.ext`
/// beside it, and `-` goes to standard output. `out` is a folder if it is one already, ends with a separator, has no
/// extension, or has to hold several pictures; the structure of an input folder is kept in it.
pub fn tasks(inputs: &[PathBuf], out: Option<&Path>, overwrite: bool) -> Result<Vec<Task>> {
    let target = Target::of(inputs, out)?;
    let mut tasks = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            let name = Path::new(input.file_name().unwrap_or_default());
            tasks.push(target.task(input.clone(), name)?);
            continue;
        }
        let (results, pictures): (Vec<PathBuf>, Vec<PathBuf>) =
            images_below(input)?.into_iter().partition(|path| target.is_earlier_result(path, input));
        if pictures.is_empty() {
            let reason = match results.len() {
                0 => format!("the folder holds no {} images", Format::READ),
                n => format!("the folder holds no images but {n} results of an earlier run"),
            };
            return Err(Error::file(input, reason));
        }
        for path in pictures {
            let inside = path.strip_prefix(input).unwrap_or(&path).to_path_buf();
            tasks.push(target.task(path, &inside)?);
        }
    }
    check(&tasks, overwrite)?;
    Ok(tasks)
}

/// Where results go.
enum Target {
    Beside,
    File(PathBuf),
    Folder(PathBuf),
}

impl Target {
    fn of(inputs: &[PathBuf], out: Option<&Path>) -> Result<Self> {
        let from_standard = inputs.iter().any(|input| is_standard(input));
        if from_standard && inputs.len() > 1 {
            return Err(Error::invalid("- reads one picture from standard input: give it alone"));
        }
        for input in inputs.iter().filter(|input| !is_standard(input)) {
            // A missing file is told with its own name, before anything else is looked at.
            std::fs::metadata(input).map_err(Error::io(input))?;
        }
        let Some(out) = out else {
            return Ok(if from_standard { Self::File("-".into()) } else { Self::Beside });
        };
        let several = inputs.len() > 1 || inputs.iter().any(|input| input.is_dir());
        if is_standard(out) {
            let reason = "-o - writes one picture to standard output, but there are several";
            return if several { Err(Error::invalid(reason)) } else { Ok(Self::File(out.to_path_buf())) };
        }
        let ends_as_folder =
            out.as_os_str().as_encoded_bytes().last().is_some_and(|&b| b == b'/' || b == b'\\');
        let is_folder = out.is_dir() || ends_as_folder;
        if from_standard && (is_folder || out.extension().is_none()) {
            let reason = "standard input has no name: give the file to write, such as -o out.png";
            return Err(Error::file(out, reason));
        }
        if is_folder {
            return Ok(Self::Folder(out.to_path_buf()));
        }
        if !several && (out.is_file() || out.extension().is_some()) {
            return Ok(Self::File(out.to_path_buf()));
        }
        if !several && out.exists() {
            let reason = "this is a device or a pipe, to which no picture can be written: name a file, or - for standard \
                          output";
            return Err(Error::file(out, reason));
        }
        if out.exists() || Format::from_path(out).is_some() {
            return Err(Error::file(out, "this is one file, but several pictures go there: name a folder"));
        }
        Ok(Self::Folder(out.to_path_buf()))
    }

    /// What is done with `input`, which lies at `inside` of its input folder.
    fn task(&self, input: PathBuf, inside: &Path) -> Result<Task> {
        let output = match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => folder.join(inside),
            Self::Beside => beside(&input, SUFFIX),
        };
        if Format::from_path(&output).is_none() && !is_standard(&output) {
            let (path, reason) = match self {
                Self::File(_) => {
                    let reason = "the extension names no format that can be written: use ";
                    (output, reason.to_string() + Format::EXTENSIONS)
                }
                _ => (
                    input,
                    format!(
                        "by its extension, this file is no {} image (if it is one, name the result, such as -o out.png)",
                        Format::READ
                    ),
                ),
            };
            return Err(Error::file(path, reason));
        }
        Ok(Task { input, output })
    }

    /// Whether a file of an input folder is what an earlier run wrote: beside its original, or in an output folder that
    /// lies in the input folder.
    fn is_earlier_result(&self, path: &Path, input: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let original =
            name.rsplit_once(SUFFIX).filter(|(_, end)| end.starts_with('.') && !end[1..].contains('.'));
        if original.is_some_and(|(stem, end)| path.with_file_name(format!("{stem}{end}")).is_file()) {
            return true;
        }
        let Self::Folder(folder) = self else { return false };
        let (folder, input, path) = (identity(folder), identity(input), identity(path));
        folder != input && folder.starts_with(&input) && path.starts_with(&folder)
    }
}

/// A path that is equal for equal files, also where the file, or its folders, are still to be made.
fn identity(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for known in absolute.ancestors() {
        if let Ok(real) = known.canonicalize() {
            let rest = absolute.strip_prefix(known).unwrap_or(Path::new(""));
            return rest.components().fold(real, |mut path, part| {
                match part {
                    Component::ParentDir => drop(path.pop()),
                    part => path.push(part),
                }
                path
            });
        }
    }
    absolute
}

fn check(tasks: &[Task], overwrite: bool) -> Result<()> {
    let inputs: HashSet<PathBuf> = tasks.iter().map(|task| identity(&task.input)).collect();
    let mut taken: HashMap<PathBuf, &Path> = HashMap::new();
    for Task { input, output } in tasks {
        if is_standard(output) {
            continue;
        }
        let (from, to) = (identity(input), identity(output));
        if from == to && !overwrite {
            return Err(Error::file(output, "this is the input itself: give --overwrite to replace it"));
        }
        if from != to && inputs.contains(&to) {
            let reason = format!("{} would replace this input: choose another output", input.display());
            return Err(Error::file(output, reason));
        }
        if let Some(other) = taken.insert(to, input) {
            let reason = format!("both {} and {} would be written there", other.display(), input.display());
            return Err(Error::file(output, reason));
        }
        if output.is_dir() {
            return Err(Error::file(output, "this is a folder, but a picture should be written there"));
        }
    }
    let exists = |path: &Path| !is_standard(path) && path.symlink_metadata().is_ok();
    let existing: Vec<&Task> = tasks.iter().filter(|task| exists(&task.output)).collect();
    match existing.first() {
        Some(task) if !overwrite => {
            let others = match existing.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let reason = format!("this file exists{others}: give --overwrite to replace it");
            Err(Error::file(&task.output, reason))
        }
        _ => Ok(()),
    }
}
