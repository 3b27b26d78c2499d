//! From the description of a layer and what it gets to the layer: every refusal says which layer it is, what it gets and what would
//! pass.

use super::LayerDescription;
use super::error::{ModelError, Result};
use super::spec::{Image, LayerSpec};

impl LayerSpec {
    /// The layer that a description means for an input of this shape; `at` is its place, counted from one.
    pub(super) fn infer(description: &LayerDescription, gets: &[usize], at: usize) -> Result<Self> {
        let read = Reading {
            description,
            gets,
            at,
        };
        let shape = gets.to_vec();
        match description.kind.as_str() {
            "linear" => {
                let outputs = read.size("outputs", description.outputs, "outputs = 10")?;
                read.takes(&["outputs"])?;
                let (positions, inputs) = match *gets {
                    [inputs] => (1, inputs),
                    [positions, inputs] if positions > 1 => (positions, inputs),
                    _ => return Err(read.refused("put { kind = \"flatten\" } before it")),
                };
                Ok(Self::Linear {
                    positions,
                    inputs,
                    outputs,
                })
            }
            "conv2d" => {
                let filters = read.size("filters", description.filters, "filters = 16")?;
                let kernel = read.size("kernel", description.kernel, "kernel = 3")?;
                let stride = read.size("stride", description.stride.or(Some(1)), "stride = 1")?;
                let padding = description.padding.unwrap_or(0);
                read.takes(&["filters", "kernel", "stride", "padding"])?;
                if padding >= kernel {
                    let passes = format!("a whole number below the kernel, which is {kernel}");
                    return Err(read.domain("padding", padding, passes));
                }
                let input = read.image(kernel, padding)?;
                Ok(Self::Conv2d {
                    input,
                    filters,
                    kernel,
                    stride,
                    padding,
                })
            }
            "max_pool" | "average_pool" => {
                let kernel = read.size("kernel", description.kernel, "kernel = 2")?;
                let stride =
                    read.size("stride", description.stride.or(Some(kernel)), "stride = 1")?;
                read.takes(&["kernel", "stride"])?;
                let input = read.image(kernel, 0)?;
                Ok(if description.kind == "max_pool" {
                    Self::MaxPool {
                        input,
                        kernel,
                        stride,
                    }
                } else {
                    Self::AveragePool {
                        input,
                        kernel,
                        stride,
                    }
                })
            }
            "flatten" => read.takes(&[]).map(|()| Self::Flatten { input: shape }),
            "relu" => read.takes(&[]).map(|()| Self::Relu { shape }),
            "tanh" => read.takes(&[]).map(|()| Self::Tanh { shape }),
            "gelu" => read.takes(&[]).map(|()| Self::Gelu { shape }),
            "layer_norm" => read.takes(&[]).map(|()| Self::LayerNorm { shape }),
            "group_norm" => {
                let groups = read.size("groups", description.groups, "groups = 4")?;
                read.takes(&["groups"])?;
                if !gets[0].is_multiple_of(groups) {
                    let passes =
                        format!("a divisor of the number of channels, which is {}", gets[0]);
                    return Err(read.domain("groups", groups, passes));
                }
                Ok(Self::GroupNorm { shape, groups })
            }
            "dropout" => {
                let rate = description
                    .rate
                    .ok_or_else(|| read.missing("rate", "rate = 0.5"))?;
                read.takes(&["rate"])?;
                if !(0.0..1.0).contains(&rate) {
                    return Err(read.domain("rate", rate, "a number from 0 on and below 1"));
                }
                Ok(Self::Dropout { shape, rate })
            }
            "embedding" => {
                let entries = read.size("entries", description.entries, "entries = 10000")?;
                let features = read.size("features", description.features, "features = 64")?;
                read.takes(&["entries", "features"])?;
                let [positions] = *gets else {
                    return Err(read.refused("let it be the first layer, on rows of tokens"));
                };
                Ok(Self::Embedding {
                    positions,
                    entries,
                    features,
                })
            }
            "attention" => {
                let heads = read.size("heads", description.heads, "heads = 4")?;
                read.takes(&["heads"])?;
                let [positions, features] = *gets else {
                    return Err(read.refused("put it after an embedding, on [positions, features]"));
                };
                if !features.is_multiple_of(heads) {
                    let passes =
                        format!("a divisor of the number of features, which is {features}");
                    return Err(read.domain("heads", heads, passes));
                }
                Ok(Self::Attention {
                    positions,
                    features,
                    heads,
                })
            }
            "batch_norm" | "batchnorm" | "batch_norm2d" | "batchnorm2d" => {
                Err(ModelError::BatchNorm { at })
            }
            kind => Err(ModelError::UnknownLayer {
                at,
                kind: kind.into(),
            }),
        }
    }
}

/// A description while it is read.
struct Reading<'a> {
    description: &'a LayerDescription,
    gets: &'a [usize],
    at: usize,
}

impl Reading<'_> {
    fn name(&self) -> String {
        format!("layer {} ({})", self.at, self.description.kind)
    }

    fn missing(&self, field: &'static str, example: &'static str) -> ModelError {
        ModelError::FieldMissing {
            of: self.name(),
            field,
            example,
        }
    }

    fn domain(
        &self,
        field: &'static str,
        given: impl ToString,
        passes: impl Into<String>,
    ) -> ModelError {
        ModelError::Domain {
            of: self.name(),
            field,
            given: given.to_string(),
            passes: passes.into(),
        }
    }

    fn refused(&self, passes: &str) -> ModelError {
        ModelError::Input {
            at: self.at,
            kind: self.description.kind.clone(),
            gets: self.gets.to_vec(),
            passes: passes.into(),
        }
    }

    /// A number that must be there and at least one.
    fn size(
        &self,
        field: &'static str,
        given: Option<usize>,
        example: &'static str,
    ) -> Result<usize> {
        match given {
            Some(0) => Err(self.domain(field, 0, "a whole number from 1 on")),
            // So that no product of two of them overflows.
            Some(size) if size >= 1 << 32 => {
                Err(self.domain(field, size, "a whole number below 2^32"))
            }
            Some(size) => Ok(size),
            None => Err(self.missing(field, example)),
        }
    }

    /// Refuses fields that this kind of layer would ignore.
    fn takes(&self, fields: &[&str]) -> Result<()> {
        let LayerDescription {
            kind: _,
            outputs,
            filters,
            kernel,
            stride,
            padding,
            groups,
            rate,
            entries,
            features,
            heads,
        } = self.description;
        let given = [
            ("outputs", outputs.is_some()),
            ("filters", filters.is_some()),
            ("kernel", kernel.is_some()),
            ("stride", stride.is_some()),
            ("padding", padding.is_some()),
            ("groups", groups.is_some()),
            ("rate", rate.is_some()),
            ("entries", entries.is_some()),
            ("features", features.is_some()),
            ("heads", heads.is_some()),
        ];
        match given
            .iter()
            .find(|(field, given)| *given && !fields.contains(field))
        {
            Some((field, _)) => Err(ModelError::FieldUnused {
                of: self.name(),
                field,
            }),
            None => Ok(()),
        }
    }

    /// The picture that comes in, on which a window must fit.
    fn image(&self, kernel: usize, padding: usize) -> Result<Image> {
        let [channels, height, width] = *self.gets else {
            return Err(self.refused("give it pictures, as [channels, height, width]; declare the shape of the data so, and put flatten after it"));
        };
        let side = height.min(width) + 2 * padding;
        if kernel > side {
            return Err(self.domain(
                "kernel",
                kernel,
                format!("at most {side}, the side of what it gets"),
            ));
        }
        Ok(Image {
            channels,
            height,
            width,
        })
    }
}

#[cfg(test)]
mod tests {
    use whit_core::Fault;

    use super::super::spec::KINDS;
    use super::*;

    fn infer(text: &str, gets: &[usize]) -> Result<LayerSpec> {
        let description = toml::from_str(text).expect("a layer");
        LayerSpec::infer(&description, gets, 3)
    }

    #[test]
    fn shapes_follow_from_the_layer_before() {
        let check = |text: &str, gets: &[usize], expected: &[usize]| {
            let layer = infer(text, gets).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(layer.output(), expected, "{text}");
            assert!(KINDS.contains(&layer.kind()));
        };
        check("kind = 'linear'\noutputs = 5", &[7], &[5]);
        check("kind = 'linear'\noutputs = 5", &[3, 7], &[3, 5]);
        check(
            "kind = 'conv2d'\nfilters = 16\nkernel = 8\nstride = 2\npadding = 3",
            &[1, 28, 28],
            &[16, 14, 14],
        );
        check(
            "kind = 'conv2d'\nfilters = 2\nkernel = 3",
            &[1, 5, 4],
            &[2, 3, 2],
        );
        check("kind = 'max_pool'\nkernel = 2", &[3, 5, 4], &[3, 2, 2]);
        check(
            "kind = 'average_pool'\nkernel = 2\nstride = 1",
            &[3, 5, 4],
            &[3, 4, 3],
        );
        check("kind = 'flatten'", &[3, 5, 4], &[60]);
        check("kind = 'gelu'", &[3, 5], &[3, 5]);
        check("kind = 'group_norm'\ngroups = 2", &[4, 5, 4], &[4, 5, 4]);
        check("kind = 'layer_norm'", &[4, 6], &[4, 6]);
        check("kind = 'dropout'\nrate = 0.25", &[6], &[6]);
        check(
            "kind = 'embedding'\nentries = 100\nfeatures = 8",
            &[12],
            &[12, 8],
        );
        check("kind = 'attention'\nheads = 2", &[12, 8], &[12, 8]);
    }

    #[test]
    fn refusals_name_the_layer_what_it_gets_and_what_would_pass() {
        let check = |text: &str, gets: &[usize], code: &str, parts: &[&str]| {
            let error = infer(text, gets).expect_err(text);
            let whole = format!("{error}; {}", error.suggestion());
            assert_eq!(error.code(), code, "{whole}");
            for part in parts.iter().chain(&["layer 3"]) {
                assert!(whole.contains(part), "{whole}");
            }
        };
        check(
            "kind = 'linear'\noutputs = 5",
            &[1, 2, 2],
            "layer_input",
            &["[1, 2, 2]", "flatten"],
        );
        check(
            "kind = 'linear'",
            &[7],
            "model_field_missing",
            &["outputs = 10"],
        );
        check(
            "kind = 'linear'\noutputs = 5\nkernel = 2",
            &[7],
            "model_field_unused",
            &["`kernel`"],
        );
        check(
            "kind = 'conv2d'\nfilters = 2\nkernel = 3",
            &[49],
            "layer_input",
            &["[49]", "[channels, height, width]"],
        );
        check(
            "kind = 'conv2d'\nfilters = 2\nkernel = 9",
            &[1, 8, 9],
            "model_field_domain",
            &["at most 8"],
        );
        check(
            "kind = 'conv2d'\nfilters = 2\nkernel = 3\npadding = 3",
            &[1, 8, 9],
            "model_field_domain",
            &["below the kernel"],
        );
        check(
            "kind = 'conv2d'\nfilters = 2\nkernel = 3\nstride = 0",
            &[1, 8, 9],
            "model_field_domain",
            &["from 1 on"],
        );
        check(
            "kind = 'max_pool'\nkernel = 3",
            &[1, 2, 2],
            "model_field_domain",
            &["at most 2"],
        );
        check(
            "kind = 'group_norm'\ngroups = 3",
            &[4, 2, 2],
            "model_field_domain",
            &["which is 4"],
        );
        check(
            "kind = 'dropout'\nrate = 1.0",
            &[4],
            "model_field_domain",
            &["below 1"],
        );
        check(
            "kind = 'attention'\nheads = 3",
            &[12, 8],
            "model_field_domain",
            &["which is 8"],
        );
        check(
            "kind = 'attention'\nheads = 3",
            &[12],
            "layer_input",
            &["embedding"],
        );
        check(
            "kind = 'embedding'\nentries = 9\nfeatures = 2",
            &[1, 2],
            "layer_input",
            &["tokens"],
        );
        check(
            "kind = 'batch_norm'",
            &[4, 2, 2],
            "batch_norm",
            &["group_norm"],
        );
        check(
            "kind = 'linear'\noutputs = 4294967296",
            &[1],
            "model_field_domain",
            &["below 2^32"],
        );
        check(
            "kind = 'lstm'",
            &[4],
            "unknown_layer",
            &["lstm", "linear, conv2d"],
        );
    }
}
