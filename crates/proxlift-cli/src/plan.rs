//! Which picture is read from where and written to where, settled and checked before any work starts.

use proxlift::image::io::Format;
use proxlift::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// One picture to denoise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Where it is read.
    pub input: PathBuf,
    /// Where it is written.
    pub output: PathBuf,
}

/// What is added to the names of results that lie beside their originals.
const SUFFIX: &str = "-denoised";

/// Pairs every input with its output.
///
/// Inputs are files, and folders with all pictures below them. Without `out`, `name.ext` becomes `name-denoised.ext`
/// beside it. `out` is a folder if it is one already, ends with a separator, has no extension, or has to hold several
/// pictures; the structure of an input folder is kept in it.
///
/// # Errors
/// When an input is missing, two inputs would be written to one file, an output is another input or names no known
/// format, or a file would be replaced without `overwrite`.
pub fn tasks(inputs: &[PathBuf], out: Option<&Path>, overwrite: bool) -> Result<Vec<Task>> {
    let target = Target::of(inputs, out)?;
    let mut tasks = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            let name = Path::new(input.file_name().unwrap_or_default());
            tasks.push(Task { output: target.place(input, name), input: input.clone() });
            continue;
        }
        let pictures = pictures_below(input)?;
        let wanted = pictures.iter().filter(|path| !target.is_earlier_result(path, input));
        let before = tasks.len();
        tasks.extend(wanted.map(|path| {
            let inside = path.strip_prefix(input).unwrap_or(path);
            Task { output: target.place(path, inside), input: path.clone() }
        }));
        if tasks.len() == before {
            return Err(Error::file(input, "the folder holds no PNG, JPEG, TIFF or WebP images to denoise"));
        }
    }
    check(&tasks, overwrite)?;
    Ok(tasks)
}

/// All pictures below `folder`, sorted. Hidden files, other files and linked folders (which could lead back) are
/// passed over.
pub fn pictures_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            let path = entry.path();
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            if entry.file_type().map_err(Error::io(&path))?.is_dir() {
                folders.push(path);
            } else if Format::from_path(&path).is_some() && !path.is_dir() {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Where results go.
enum Target {
    Beside,
    File(PathBuf),
    Folder(PathBuf),
}

impl Target {
    fn of(inputs: &[PathBuf], out: Option<&Path>) -> Result<Self> {
        for input in inputs {
            // A missing file is told with its own name, before anything else is looked at.
            std::fs::metadata(input).map_err(Error::io(input))?;
        }
        let Some(out) = out else { return Ok(Self::Beside) };
        let several = inputs.len() > 1 || inputs.iter().any(|input| input.is_dir());
        let ends_as_folder =
            out.as_os_str().as_encoded_bytes().last().is_some_and(|&b| b == b'/' || b == b'\\');
        if out.is_dir() || ends_as_folder {
            return Ok(Self::Folder(out.to_path_buf()));
        }
        if !several && (out.is_file() || out.extension().is_some()) {
            return Ok(Self::File(out.to_path_buf()));
        }
        if out.exists() || Format::from_path(out).is_some() {
            return Err(Error::file(out, "this is one file, but several pictures go there: name a folder"));
        }
        Ok(Self::Folder(out.to_path_buf()))
    }

    /// Where `input` goes, which lies at `inside` of its input folder.
    fn place(&self, input: &Path, inside: &Path) -> PathBuf {
        match self {
            Self::File(path) => path.clone(),
            Self::Folder(folder) => folder.join(inside),
            Self::Beside => {
                let mut name = input.file_stem().unwrap_or_default().to_os_string();
                name.push(SUFFIX);
                if let Some(extension) = input.extension() {
                    name.push(".");
                    name.push(extension);
                }
                input.with_file_name(name)
            }
        }
    }

    /// Whether a file of an input folder is what an earlier run wrote there: it is not denoised again.
    fn is_earlier_result(&self, path: &Path, input: &Path) -> bool {
        match self {
            Self::File(_) => false,
            Self::Beside => {
                let stem = path.file_stem().unwrap_or_default().as_encoded_bytes();
                stem.ends_with(SUFFIX.as_bytes())
            }
            Self::Folder(folder) => {
                let (folder, input, path) = (identity(folder), identity(input), identity(path));
                folder != input && folder.starts_with(&input) && path.starts_with(&folder)
            }
        }
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
        if Format::from_path(output).is_none() {
            let reason = "the extension names no format that can be written; use png, jpg, tif or webp";
            return Err(Error::file(output, reason));
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
            return Err(Error::file(output, "this is a folder, where a picture should be written"));
        }
    }
    let existing: Vec<&Task> = tasks.iter().filter(|t| t.output.symlink_metadata().is_ok()).collect();
    match existing.first() {
        Some(task) if !overwrite => {
            let others = match existing.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            Err(Error::file(
                &task.output,
                format!("this file exists{others}: give --overwrite to replace it"),
            ))
        }
        _ => Ok(()),
    }
}
