//! A graph that grows node by node. A value is known by its name, an identifier as ONNX requires.

use super::proto::{AttributeProto, FLOAT, GraphProto, INT, INT64, INTS, NodeProto, TensorProto};

/// An attribute of a node.
pub enum Attribute<'a> {
    Int(&'a str, usize),
    Ints(&'a str, &'a [usize]),
}

#[derive(Default)]
pub struct Graph(pub GraphProto);

impl Graph {
    /// A node without attributes, called like its output, whose name is returned.
    pub fn node(&mut self, operator: &str, inputs: &[&str], output: &str) -> String {
        self.node_with(operator, inputs, output, &[])
    }

    pub fn node_with(
        &mut self,
        operator: &str,
        inputs: &[&str],
        output: &str,
        attributes: &[Attribute<'_>],
    ) -> String {
        let attribute = attributes.iter().map(|attribute| match *attribute {
            Attribute::Int(name, i) => {
                AttributeProto { name: name.into(), i: Some(i as i64), ints: Vec::new(), r#type: INT }
            }
            Attribute::Ints(name, ints) => {
                let ints = ints.iter().map(|&i| i as i64).collect();
                AttributeProto { name: name.into(), i: None, ints, r#type: INTS }
            }
        });
        self.0.node.push(NodeProto {
            input: inputs.iter().map(ToString::to_string).collect(),
            output: vec![output.into()],
            name: output.into(),
            op_type: operator.into(),
            attribute: attribute.collect(),
        });
        output.into()
    }

    /// Numbers in single precision; a name that is already there stands for what it stands for.
    pub fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        assert_eq!(
            shape.iter().product::<usize>(),
            values.len(),
            "{name} has another shape than its numbers"
        );
        self.constant(name, shape, FLOAT, values.iter().flat_map(|v| v.to_le_bytes()))
    }

    pub fn number(&mut self, name: &str, value: f32) -> String {
        self.floats(name, &[], &[value])
    }

    /// Numbers of each feature, or one for all, to be broadcast over samples and pixels.
    pub fn by_feature(&mut self, name: &str, values: &[f32]) -> String {
        self.floats(name, &[1, values.len(), 1, 1], values)
    }

    /// An integer, as a scalar.
    pub fn integer(&mut self, name: &str, value: i64) -> String {
        self.constant(name, &[], INT64, value.to_le_bytes())
    }

    pub fn integers(&mut self, name: &str, values: &[i64]) -> String {
        self.constant(name, &[values.len()], INT64, values.iter().flat_map(|v| v.to_le_bytes()))
    }

    fn constant(
        &mut self,
        name: &str,
        shape: &[usize],
        data_type: i32,
        bytes: impl IntoIterator<Item = u8>,
    ) -> String {
        if self.0.initializer.iter().all(|tensor| tensor.name != name) {
            self.0.initializer.push(TensorProto {
                dims: shape.iter().map(|&n| n as i64).collect(),
                data_type,
                name: name.into(),
                raw_data: bytes.into_iter().collect(),
            });
        }
        name.into()
    }
}
